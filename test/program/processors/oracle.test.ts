import { Stripe } from 'stripe';
import t from 'tap';
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
