/** All patterns of the service, and which of them read nothing of strangers, or so little that it does not matter. */
import { builtPatterns, modules, type Pattern, writtenPatterns } from './collect.ts';

const search = String.raw`/(?:https?:\/\/|\bwww\.)[^\s"]+|(?<![^\s"-])[\w-]+(?:\.[\w-]+)+\/[^\s"]*/giu`;
/** Quadratic patterns, each with the reason why nobody can make use of it. */
export const bounded: Record<string, string> = {
  '/\\B(?=(\\d{3})+$)/g': 'Digits of an amount: at most 16.',
  '/, .* is not valid JSON$/s': 'A message of JSON.parse, which quotes some signs of the text.',
  '/ ?\\bNull\\b[^.]*\\./g': 'A description of our own.',
  '/<script[^>]*>([^<]+)<\\/script>/g': 'The page of a package.',
  '/<script(?![^>]*\\bsrc=)[^>]*>([\\s\\S]+?)<\\/script>/g': 'The page of a package.',
  [search]: 'A search text of at most 200 signs.',
  '/<h2(?: id="([^"]*)")?>(.*?)<\\/h2>/g': 'A page of our own.',
  '/<(https?:[^>]+)>/': 'A mail of the demo, which it wrote itself.',
};

/** Patterns that are made elsewhere: one as it is made there, or the name of its owner. */
const made_elsewhere: Record<string, RegExp | string> = {
  'src/program/tracking/short_link.ts': /(?:^|; *)rail_visitor=([\w-]{24})(?:;|$)/,
  'src/core/http/unknown_path.ts': /^\/recruitment\/v1\/prospects\/[^/]+\/.*$/,
  'src/core/description/example.ts': 'A description of our own.',
  'src/recruitment/unsubscribing/link.ts': 'An id of our own.',
};

/** Makes those that are made when a text is read. */
async function readOneOfEach(): Promise<void> {
  for (const module of modules()) await import(module);
  const { readReturnDate } = await import('../../src/mail/incoming/automatic/return_date.ts');
  const { addressIn, allAddressesIn } = await import('../../src/mail/incoming/bounces/server_words.ts');
  const { boundedHtml } = await import('../../src/mail/incoming/writing/bounded_html.ts');
  const { namedIn } = await import('../../src/recruitment/replies/named.ts');
  const { expandMacros } = await import('../../src/recruitment/inboxes/sender_policy/spf_macro.ts');
  addressIn('rfc822; ada@shop.example');
  allAddressesIn('ada@shop.example');
  readReturnDate('I am back on Monday. I am out of the office until Monday, 3 May.', new Date());
  boundedHtml('<style>a</style>');
  namedIn('Please contact my colleague Grace Hopper, grace@shop.example.');
  expandMacros('%{d}', 'shop.example', { ip: '192.0.2.1', sender: 'ada@shop.example', helo: 'shop.example' } as never);
}

const built = await builtPatterns(readOneOfEach);
const { literals, made_at } = writtenPatterns();
const like_made = Object.entries(made_elsewhere).flatMap(([at, one]) =>
  one instanceof RegExp ? { source: one.source, flags: one.flags, at } : [],
);

export const patterns = new Map<string, Pattern>(
  [...literals, ...built, ...like_made].map((one) => [`/${one.source}/${one.flags}`, one]),
);
export const checked = [...patterns].filter(([text]) => !(text in bounded));

const lines = new Set(built.map(({ at }) => at));
/** Places that make patterns which are not among these. */
export const unseen = made_at.filter((at) => !lines.has(at) && !(at.replace(/:\d+$/, '') in made_elsewhere));
export const needless = Object.keys(made_elsewhere).filter((file) => !made_at.some((at) => at.startsWith(`${file}:`)));
