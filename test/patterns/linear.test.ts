/**
 * Every pattern of the service takes a time that grows with the length of a text, and not with its square: whoever writes a mail, a page or a file chooses that
 * text. `recheck` proves it of most; all are tried on texts of 100,000 signs, on which a quadratic one takes many seconds of processor time.
 */
import t from 'tap';
import { TimedThread, TookTooLong } from '../../src/core/threads/timed_thread.ts';
import { builtPatterns, modules, type Pattern, writtenPatterns } from './collect.ts';
import type { Trial } from './pattern_thread.ts';
import { piecesOf } from './pieces.ts';
import { unitsOf } from './pumps.ts';

process.env.RECHECK_BACKEND = 'pure';
const { check } = await import('recheck');

const search = String.raw`/(?:https?:\/\/|\bwww\.)[^\s"]+|(?<![^\s"-])[\w-]+(?:\.[\w-]+)+\/[^\s"]*/giu`;
/** What is quadratic, and why nobody can make use of it. */
const bounded: Record<string, string> = {
  '/\\B(?=(\\d{3})+$)/g': 'Digits of an amount: at most 16.',
  '/, .* is not valid JSON$/s': 'A message of JSON.parse, which quotes some signs of the text.',
  '/ ?\\bNull\\b[^.]*\\./g': 'A description of our own.',
  '/<script[^>]*>([^<]+)<\\/script>/g': 'The page of a package.',
  '/<script(?![^>]*\\bsrc=)[^>]*>([\\s\\S]+?)<\\/script>/g': 'The page of a package.',
  [search]: 'A search text of at most 200 signs.',
  '/<h2(?: id="([^"]*)")?>(.*?)<\\/h2>/g': 'A page of our own.',
  '/<(https?:[^>]+)>/': 'A mail of the demo, which it wrote itself.',
};

const built = await builtPatterns(async () => {
  for (const module of modules()) await import(module);
});
const patterns = new Map<string, Pattern>(
  [...writtenPatterns(), ...built].map((one) => [`/${one.source}/${one.flags}`, one]),
);
const judged = [...patterns].filter(([text]) => !(text in bounded));

t.test('the patterns are all of the service', async (t) => {
  t.ok(patterns.size > 500, `${patterns.size} patterns`);
  t.ok(built.length > 30, `${built.length} of them are built`);
  for (const text of Object.keys(bounded)) t.ok(patterns.has(text), `${text} is one of them`);
});

t.test('recheck finds none that is more than linear', async (t) => {
  const known = new Map<string, Promise<string>>();
  const counts = { safe: 0, vulnerable: 0, unknown: 0 };
  for (const [text, pattern] of judged) {
    for (const { source, flags } of piecesOf(pattern)) {
      const key = `/${source}/${flags}`;
      const asked =
        known.get(key) ?? check(source, flags, { checker: 'automaton', timeout: 500 }).then(({ status }) => status);
      known.set(key, asked);
      const status = (await asked) as keyof typeof counts;
      counts[status] += 1;
      if (status === 'vulnerable') t.fail(`${pattern.at}: ${key} of ${text}`);
    }
  }
  t.comment(counts);
  t.ok(counts.safe > counts.unknown, 'it can tell of most');
});

t.test('none takes long on texts that are made for it', async (t) => {
  const thread = new TimedThread<Trial, boolean>(new URL('./pattern_thread.ts', import.meta.url), {
    ...{ name: 'Trying a pattern', most_ms: 2_000, most_heap_mib: 256 },
  });
  let texts = 0;
  for (const [text, pattern] of judged) {
    for (const unit of unitsOf(pattern)) {
      const is_late = await thread.ask({ ...pattern, unit }).then(
        () => false,
        (error) => {
          if (error instanceof TookTooLong) return true;
          throw error;
        },
      );
      if (is_late) t.fail(`${pattern.at}: ${text} on ${JSON.stringify(unit)}`);
      texts += 1;
    }
  }
  t.ok(texts > judged.length, `${texts} texts`);
  thread.close();
});
