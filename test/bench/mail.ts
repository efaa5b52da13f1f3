import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import PostalMime from 'postal-mime';
import {
  type Classification,
  classifyMail,
  classifyMessage,
  type MailContext,
} from '../../src/mail/incoming/classify.ts';
import { plainMessage } from '../../src/mail/incoming/message/message.ts';
import { readWritten } from '../../src/mail/incoming/writing/written_text.ts';
import { classifyReply } from '../../src/recruitment/replies/classify.ts';
import type { Bench, Figure, Sample, Side } from './harness.ts';
import { repliesSides, reply_figures } from './replies.ts';

const default_data = join(import.meta.dirname, '../../../shared/data');
const context: MailContext = { own_addresses: [], readMeaning: classifyReply, now: new Date('2026-01-01T00:00:00Z') };

/** Measures the reading of real mail, beside rules of a few lines each. */
export const mail: Bench = {
  name: 'mail',
  doc: 'How well incoming mail is classified, on mail that is not part of the project, and how fast.',
  defaults: { rounds: 1, seconds: 2 },
  async setup(_, __, ___, data = process.env.RAIL_BENCH_DATA ?? default_data) {
    const sides = [...bounceSides(data), ...quoteSides(data), ...automaticSides(data), ...meaningSides(data)];
    const skipped = sides.length === 0 ? [`Skipped: there is no mail at ${data}. --data names another folder.`] : [];
    return { sides, figures: { ...figures, ...reply_figures }, notes: [...notes, ...skipped] };
  },
};

const share = (doc: string): Figure => ({ unit: '', better: 'higher', doc });
const figures: Record<string, Figure> = {
  told: share('share of bounces, complaints and other mail told apart; the aim is 0.99'),
  hard: share('share of recipients whose address is rightly called dead or not; the aim is 0.95'),
  exact: share('share of mails whose new text is cut exactly; the aim is 0.9'),
  precision: share('share of the mails called automatic replies that are; the aim is 0.99'),
  recall: share('share of automatic replies that are found'),
  unsubscribe_recall: share('share of those who only ask to be taken off that are found'),
  mails_per_s: { unit: '/s', better: 'higher', doc: 'mails classified a second, by one thread' },
};
const notes = [
  'Two messages labelled as vacations count as automatic replies, and requests to a List-Unsubscribe address as unsubscribes, as the service takes them.',
  'The other mail, from which bounces are told, are the mails of the quotes and the replies.',
];

interface Labelled {
  raw: Uint8Array;
  kind: Classification['kind'];
  recipients: { hard: boolean }[];
}
interface Reply {
  subject: string;
  text: string;
  label: string;
}

function bounceSides(data: string): Side[] {
  const folder = join(data, 'mail/bounces');
  if (!existsSync(folder)) return [];
  const mails = [...labelledBounces(folder), ...otherMail(data)];
  const classify = async ({ raw }: Labelled) => classifyMail(raw, context);
  const byField = async ({ raw }: Labelled) => {
    const text = Buffer.from(raw).toString('latin1');
    const kind = /^Content-Type: message\/feedback-report/im.test(text)
      ? 'complaint'
      : /^From:.*(?:mailer-daemon|postmaster)/im.test(text)
        ? 'bounce'
        : 'reply';
    return { kind, recipients: [{ hard: /^Status: 5\.1\./im.test(text) }] };
  };
  return [
    {
      name: 'bounces',
      doc: 'mail/bounces beside other mail, by classifyMail',
      baseline: 'bounces.fields',
      run: (seconds) => measureBounces(mails, classify, seconds),
    },
    {
      name: 'bounces.fields',
      doc: 'sender and Status alone',
      run: (seconds) => measureBounces(mails, byField, seconds),
    },
    {
      name: 'bounces.parsed',
      doc: 'parsing alone, by postal-mime',
      run: async (seconds) => ({ mails_per_s: await speedOf(mails, ({ raw }) => PostalMime.parse(raw), seconds) }),
    },
  ];
}

function labelledBounces(folder: string): Labelled[] {
  const labels: Record<string, { kind: Labelled['kind']; recipients: { hard: boolean; reason: string }[] }> =
    JSON.parse(readFileSync(join(folder, 'labels.json'), 'utf8'));
  return Object.entries(labels).map(([file, { kind, recipients }]) => {
    const raw = readFileSync(join(folder, file));
    const is_vacation = recipients[0]?.reason === 'vacation';
    const is_request = /^X-Apple-Unsubscribe: true/im.test(raw.toString('latin1'));
    return { raw, kind: is_vacation ? 'auto_reply' : is_request ? 'unsubscribe' : kind, recipients };
  });
}

/** Other mail, of which it counts only that it is neither a bounce nor a complaint. */
function otherMail(data: string): Labelled[] {
  const texts = [...quotesIn(data).map(({ text }) => ({ subject: 'Re: Program', text })), ...repliesIn(data)];
  return texts.map(({ subject, text }) => ({
    raw: Buffer.from(
      `From: grace@blog.example\r\nSubject: ${subject}\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${text}`,
    ),
    kind: 'reply',
    recipients: [],
  }));
}

type Told = { kind: string; recipients: { hard: boolean }[] };

async function measureBounces(
  mails: Labelled[],
  classify: (mail: Labelled) => Promise<Told>,
  seconds: number,
): Promise<Sample> {
  const reports = ['bounce', 'complaint'];
  const outcomes = await Promise.all(mails.map(async (one) => ({ one, told: await classify(one) })));
  const right = outcomes.filter(({ one, told }) =>
    reports.includes(one.kind) ? told.kind === one.kind : !reports.includes(told.kind),
  );
  const hard = outcomes
    .filter(({ one }) => one.kind === 'bounce')
    .flatMap(({ one, told }) =>
      one.recipients.map((recipient, at) => recipient.hard === (told.recipients[at] ?? told.recipients[0])?.hard),
    );
  return {
    told: right.length / outcomes.length,
    hard: hard.filter(Boolean).length / hard.length,
    mails_per_s: await speedOf(mails, classify, seconds),
  };
}

function quoteSides(data: string): Side[] {
  const quotes = quotesIn(data);
  if (quotes.length === 0) return [];
  const plain = (text: string): string =>
    text
      .split('\n')
      .filter((line) => !line.startsWith('>'))
      .join('\n');
  const measured = (cut: (text: string) => string) => async (seconds: number) => ({
    exact: quotes.filter(({ text, reply }) => trimmed(cut(text)) === trimmed(reply)).length / quotes.length,
    mails_per_s: await speedOf(quotes, ({ text }) => cut(text), seconds),
  });
  return [
    {
      name: 'quotes',
      doc: 'mail/quotes, by readWritten',
      baseline: 'quotes.marked',
      run: measured((text) => readWritten({ text, html: '' }).text),
    },
    { name: 'quotes.marked', doc: 'without lines that begin with >', run: measured(plain) },
  ];
}

const trimmed = (text: string): string => text.replaceAll('\r', '').trim();

function quotesIn(data: string): { text: string; reply: string }[] {
  const folder = join(data, 'mail/quotes');
  if (!existsSync(folder)) return [];
  const read = (part: string, file: string) => readFileSync(join(folder, part, file), 'utf8');
  return readdirSync(join(folder, 'text')).map((file) => ({ text: read('text', file), reply: read('reply', file) }));
}

function automaticSides(data: string): Side[] {
  const replies = repliesIn(data);
  if (replies.length === 0) return [];
  const classify = (reply: Reply): string => classifyMessage(plainMessage(reply), context).kind;
  const bySubject = ({ subject }: Reply): string =>
    /^(?:auto|out of office|vacation)/i.test(subject)
      ? 'auto_reply'
      : /^(?:re: )?unsubscribe/i.test(subject)
        ? 'unsubscribe'
        : 'reply';
  return [
    {
      name: 'automatic',
      doc: 'replies, by classifyMessage',
      baseline: 'automatic.subject',
      run: (seconds) => measureReplies(replies, classify, seconds),
    },
    { name: 'automatic.subject', doc: 'subjects alone', run: (seconds) => measureReplies(replies, bySubject, seconds) },
  ];
}

/** Measures the meaning of replies, by their writers' own words. */
const meaningSides = (data: string): Side[] =>
  repliesSides(data, (text) => readWritten({ text, html: '' }).own_words) ?? [];

function repliesIn(data: string): Reply[] {
  const file = join(data, 'replies/dev.jsonl');
  return existsSync(file)
    ? readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
    : [];
}

async function measureReplies(replies: Reply[], classify: (reply: Reply) => string, seconds: number): Promise<Sample> {
  const told = replies.map((reply) => ({ ...reply, kind: classify(reply) }));
  const of = (kind: string) => told.filter((reply) => reply.kind === kind);
  const recall = (kind: string): number =>
    of(kind).filter(({ label }) => label === kind).length / replies.filter(({ label }) => label === kind).length;
  return {
    precision: of('auto_reply').filter(({ label }) => label === 'auto_reply').length / of('auto_reply').length,
    recall: recall('auto_reply'),
    unsubscribe_recall: recall('unsubscribe'),
    mails_per_s: await speedOf(replies, classify, seconds),
  };
}

async function speedOf<Item>(items: Item[], work: (item: Item) => unknown, seconds: number): Promise<number> {
  const began = performance.now();
  let count = 0;
  while (performance.now() - began < seconds * 1_000) {
    await work(items[count % items.length] as Item);
    count += 1;
  }
  return count / ((performance.now() - began) / 1_000);
}
