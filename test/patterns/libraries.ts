/** Libraries that read what strangers write: the processor time of each for texts of one sign or word, and for twice as long ones. */
import { parse } from 'csv-parse/sync';
import { compile } from 'html-to-text';
import { Parser } from 'htmlparser2';
import { isbot } from 'isbot';
import PostalMime, { addressParser, decodeWords } from 'postal-mime';
import robots_parser from 'robots-parser';
import { detectAll } from 'tinyld';
import { parse as parseHost } from 'tldts';
import { readMessage } from '../../src/mail/incoming/message/message.ts';
import { boundedHtml } from '../../src/mail/incoming/writing/bounded_html.ts';
import { parseReport } from '../../src/program/payouts/bank/report_xml.ts';
import { csv_options } from '../../src/recruitment/imports/document.ts';
import { rulesOf } from '../../src/recruitment/pages/robots.ts';

const length = 100_000;
const units = [
  ...' \t\n\0<>&"\'=/\\-.:;,@#%*+?()[]{}|~_^$!aA1é日\u0301',
  ...[
    '\r\n',
    '<a',
    '<a ',
    '<p>',
    '</p>',
    '<!--',
    '<table><tr><td>',
    '<blockquote>',
    '&amp;',
    '&#',
    '<![CDATA[',
    '<style>',
    'a=',
    'a="',
  ],
  ...[
    'a,',
    '",',
    '""',
    'a;',
    '=?utf-8?q?',
    '=?utf-8?q?a?= ',
    '<a@b>',
    'a@b,',
    '(a',
    'a: b\n',
    '--a\n',
    '=3D',
    'a.b.',
    'xn--',
    '*a',
    'Disallow: /*\n',
    'User-agent: a\n',
  ],
];

const robots = robots_parser as unknown as typeof robots_parser.default;
const toText = compile({});
const mailOf = (body: string, head = '') => new TextEncoder().encode(`From: a@b.co\r\n${head}\r\n\r\n${body}`);
const quiet = (work: () => unknown) => {
  try {
    return work();
  } catch {
    return undefined;
  }
};

/** As they are, and as the service bounds them where it does. */
const readers: Record<string, (text: string) => unknown> = {
  'html-to-text': (text) => toText(text),
  'html-to-text, bounded': (text) => toText(boundedHtml(text)),
  htmlparser2: (text) => new Parser({}).end(text),
  'csv-parse': (text) => parse(text, csv_options),
  'postal-mime, body': (text) => PostalMime.parse(mailOf(text)),
  'postal-mime, header': (text) => PostalMime.parse(mailOf('', `Subject: ${text.replaceAll('\n', ' ')}`)),
  'postal-mime, bounded': (text) => readMessage(mailOf(text, `To: ${text.replaceAll('\n', ' ')}`)),
  'postal-mime, addresses of 10,000': (text) => addressParser(text.slice(0, 10_000)),
  'postal-mime, words of 10,000': (text) => decodeWords(text.slice(0, 10_000)),
  'robots-parser': (text) => robots('https://a.com/robots.txt', text).isAllowed('https://a.com/a', 'RailBot'),
  'robots-parser, bounded': (text) =>
    rulesOf('https://a.com', { status: 200, bytes: Buffer.from(`User-agent: *\nDisallow: /${text}`) }).allows(
      new URL(`https://a.com/${'a'.repeat(8_000)}`),
    ),
  'fast-xml-parser, bounded': (text) => parseReport(`<Document>${text}</Document>`),
  'tinyld, 3,000': (text) => detectAll(text.slice(0, 3_000)),
  'isbot, 1,024': (text) => isbot(text.slice(0, 1_024)),
  'tldts, 2,048': (text) => parseHost(text.slice(0, 2_048)),
};

/** The time for `length` signs beyond which a library is reported. */
const told_ms = 200;

async function timeOf(read: (text: string) => unknown, text: string): Promise<number> {
  const before = process.cpuUsage();
  await Promise.resolve(quiet(() => read(text))).catch(() => {});
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** @returns the libraries that are slow, each with its slowest text */
export async function slowLibraries(): Promise<Record<string, { unit: string; half_ms: number; ms: number }>> {
  const slowest: Record<string, { unit: string; half_ms: number; ms: number }> = {};
  for (const [name, read] of Object.entries(readers)) {
    for (const unit of units) {
      const text = unit.repeat(length / unit.length);
      const half_ms = await timeOf(read, text.slice(0, length / 2));
      const ms = half_ms > 10_000 ? Number.POSITIVE_INFINITY : await timeOf(read, text);
      if (ms > (slowest[name]?.ms ?? 0)) slowest[name] = { unit, half_ms: Math.round(half_ms), ms: Math.round(ms) };
    }
    console.log(name.padEnd(34), JSON.stringify(slowest[name]));
  }
  return Object.fromEntries(Object.entries(slowest).filter(([, { ms }]) => ms > told_ms));
}
