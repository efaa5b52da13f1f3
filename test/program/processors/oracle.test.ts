import { createHmac } from 'node:crypto';
import { Paddle } from '@paddle/paddle-node-sdk';
import { basicAuthValidator } from 'chargebee';
import { Stripe } from 'stripe';
import t from 'tap';
import { chargebee } from '../../../src/program/processors/chargebee/chargebee.ts';
import { verify } from '../../../src/program/processors/paddle/paddle.ts';
import { DeliveryRefused } from '../../../src/program/processors/processor.ts';
import { stripe } from '../../../src/program/processors/stripe/stripe.ts';
import { drawing } from './chaos_story.ts';

const secret = 'whsec_0123456789abcdef0123456789abcdef';
const draw = drawing(10_000);
const pick = <Item>(items: Item[]): Item => items[draw(items.length)] as Item;

/** A header that Stripe might send, or somebody who would like to be Stripe. */
function headerOf(payload: string, now_s: number): string {
  const timestamp = now_s - pick([0, 0, 0, 1, 299, 301, 3_600, 1_000_000]);
  const signed = (key: string, text = payload) =>
    Stripe.webhooks.generateTestHeaderString({ payload: text, secret: key, timestamp }).split(',')[1] as string;
  const good = signed(secret);
  const parts = [
    pick([`t=${timestamp}`, `t=${timestamp}`, `t=${timestamp}`, 't=', 't=soon', '']),
    ...Array.from({ length: draw(4) }, () =>
      pick([
        good,
        good,
        signed('whsec_of_somebody_else'),
        signed(secret, `${payload} `),
        'v1=',
        'v1=00',
        `v0=${good.slice(3)}`,
        good.slice(0, -1),
      ]),
    ),
  ];
  return pick([parts, parts, parts, parts.toReversed()])
    .filter((part) => part !== '')
    .join(',');
}

/** The known difference: the library refuses a header that is good where it also has an empty `v1`. */
const has_empty = /v1=(?:,|$)/;

t.test('gives the verdict of the library of Stripe on 10,000 headers', async (t) => {
  const payload = JSON.stringify({
    id: 'evt_1',
    object: 'event',
    type: 'invoice.paid',
    created: 1,
    data: { object: {} },
  });
  const raw_body = Buffer.from(payload);
  const verdicts = { taken: 0, refused: 0 };
  const different: string[] = [];
  for (let nth = 0; nth < 10_000; nth++) {
    const now_ms = Date.now();
    const header = headerOf(payload, Math.floor(now_ms / 1000));
    const theirs = verdictOf(() => Stripe.webhooks.constructEvent(payload, header, secret, 300));
    const ours = verdictOf(() =>
      stripe.receive({ headers: { 'stripe-signature': header }, raw_body, now_ms }, { webhook_secret: secret }),
    );
    verdicts[ours ? 'taken' : 'refused']++;
    if (ours !== theirs && !has_empty.test(header)) different.push(header);
  }
  t.same(different, []);
  t.ok(verdicts.taken > 500 && verdicts.refused > 500, JSON.stringify(verdicts));
});

function verdictOf(verify: () => unknown): boolean {
  try {
    verify();
    return true;
  } catch (error) {
    const { type, message } = error as { type?: string; message: string };
    if (error instanceof DeliveryRefused || type === 'StripeSignatureVerificationError') return false;
    if (message.startsWith('secureCompare')) return false; // of an empty v1
    throw error;
  }
}

/** A header as Paddle sends it, or one that is wrong, and the ways in which its library is known to differ. */
function paddleHeader(body: string, now_s: number): { header: string; differs: string | undefined } {
  const age = pick([0, 0, 0, 60, 250, 400, -250, -400]);
  const ts = now_s - age;
  const signed = (key: string, text = body) => `h1=${createHmac('sha256', key).update(`${ts}:${text}`).digest('hex')}`;
  const good = signed(secret);
  const h1 = Array.from({ length: pick([0, 1, 1, 1, 2]) }, () =>
    pick([good, good, good, signed('another secret'), signed(secret, `${body} `), good.slice(0, -1), 'h1=', 'h1=00']),
  );
  const time = pick([`ts=${ts}`, `ts=${ts}`, `ts=${ts}`, `ts=${ts}x`, 'ts=', '']);
  const parts = pick([
    [time, ...h1],
    [time, ...h1],
    [...h1, time],
  ]).filter((part) => part !== '');
  const differs = [
    age > 5 && age <= 300 ? 'older than five seconds' : undefined,
    age < -300 ? 'of the future' : undefined,
    h1.length > 1 ? 'several signatures' : undefined,
    time.endsWith('x') ? 'a time that is no number' : undefined,
  ].find((one) => one !== undefined);
  return { header: parts.join(';'), differs };
}

t.test('gives the verdict of the library of Paddle on 10,000 headers, but for four known differences', async (t) => {
  const body = JSON.stringify({ event_id: 'evt_1', event_type: 'transaction.completed', data: {}, occurred_at: '' });
  const paddle = new Paddle('pdl_sdbx_apikey_unused');
  const verdicts = { taken: 0, refused: 0 };
  const known: Record<string, number> = {};
  const different: string[] = [];
  for (let nth = 0; nth < 10_000; nth++) {
    const now_ms = Date.now();
    const { header, differs } = paddleHeader(body, Math.floor(now_ms / 1000));
    const theirs = await paddle.webhooks.isSignatureValid(body, secret, header).catch(() => false);
    const ours = verdictOf(() => verify(header, Buffer.from(body), secret, now_ms));
    verdicts[ours ? 'taken' : 'refused']++;
    if (ours === theirs) continue;
    if (differs === undefined) different.push(header);
    else known[differs] = (known[differs] ?? 0) + 1;
  }
  t.same(different, []);
  t.same(Object.keys(known).sort(), [
    'a time that is no number',
    'of the future',
    'older than five seconds',
    'several signatures',
  ]);
  t.ok(verdicts.taken > 500 && verdicts.refused > 500, JSON.stringify(verdicts));
});

t.test('gives the verdict of the library of Chargebee on 10,000 headers, but for base64 without its end', async (t) => {
  const [webhook_username, webhook_password] = ['rail', 'correct-horse:battery'];
  const validate = basicAuthValidator((name, password) => name === webhook_username && password === webhook_password);
  const raw_body = Buffer.from(JSON.stringify({ id: 'ev_1', event_type: 'payment_succeeded', occurred_at: 1 }));
  const encoded = (text: string) => Buffer.from(text).toString('base64');
  const good = encoded(`${webhook_username}:${webhook_password}`);
  t.ok(good.endsWith('='), 'there is an end to leave out');
  const verdicts = { taken: 0, refused: 0 };
  const different: string[] = [];
  let unpadded = 0;
  for (let nth = 0; nth < 10_000; nth++) {
    const word = pick([
      good,
      good,
      encoded('rail:wrong'),
      encoded(`other:${webhook_password}`),
      encoded('rail'),
      good.replaceAll('=', ''),
      '',
      '%%%',
    ]);
    const authorization = pick([
      `Basic ${word}`,
      `Basic ${word}`,
      `Basic ${word}`,
      `basic ${word}`,
      `Bearer ${word}`,
      word,
      `Basic  ${word}`,
      '',
    ]);
    const theirs = await validate({ authorization }).then(
      () => true,
      () => false,
    );
    const credentials = { webhook_username, webhook_password };
    const ours = verdictOf(() =>
      chargebee.receive({ headers: { authorization }, raw_body, now_ms: Date.now() }, credentials),
    );
    verdicts[ours ? 'taken' : 'refused']++;
    if (ours === theirs) continue;
    if (theirs && word === good.replaceAll('=', '')) unpadded++;
    else different.push(authorization);
  }
  t.same(different, []);
  t.ok(unpadded > 0 && verdicts.taken > 500 && verdicts.refused > 500, JSON.stringify(verdicts));
});
