/**
 * Chargebee signs nothing: a webhook carries a user name and a password, and only names the event, which is asked for before it is believed.
 * https://apidocs.chargebee.com/docs/api/events
 */
import { z } from 'zod';
import { sameText } from '../../../core/encryption/vault.ts';
import { parsedJson } from '../../../core/net/answer.ts';
import { Problem } from '../../../core/values/problem.ts';
import { at, listAt, textAt } from '../../payouts/rails/answer.ts';
import { callProcessor, messageOf, readProcessor, translated } from '../call.ts';
import {
  type Account,
  type Attributable,
  type Credentials,
  type Delivery,
  DeliveryRefused,
  type Envelope,
  type Page,
  type Processor,
  type Reading,
  requireEnvelope,
} from '../processor.ts';
import { numberAt, timeOf } from '../stripe/fields.ts';
import { atSite, caller } from './client.ts';
import { chargeOf, clickOf, partsOf, paymentOf, readers } from './events.ts';
import { chargebeeMovements } from './movements.ts';
import { createChargebeePromotion } from './promotion.ts';

const { title } = caller;

/** The objects that a key must be allowed to read. */
const readable = ['/events', '/transactions', '/customers'];

export const chargebee: Processor = {
  name: 'chargebee',
  title,
  refusal: "The user name or the password is not that of this program's webhook, or the body is not an event.",
  credentials: z.strictObject({
    site: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]{1,60}$/, 'must be the name of a site, such as acme or acme-test')
      .describe('The name of the site: `acme` of acme.chargebee.com. That of a test site ends with `-test`.'),
    api_key: z
      .string()
      .regex(/^[A-Za-z0-9_]{16,255}$/, 'must be an API key')
      .describe('An API key of the site that may read all objects (read-only, all).'),
    webhook_username: z
      .string()
      .regex(/^[A-Za-z0-9_.-]{1,100}$/, 'must have letters, digits, ., _ and - only')
      .describe(
        'The user name that you set for the webhook in Chargebee, under “Protect webhook URL with basic authentication”.',
      ),
    webhook_password: z
      .string()
      .regex(/^[\x21-\x7e]{16,200}$/, 'must have 16 to 200 characters without spaces')
      .describe('The password that you set for it there.'),
  }),
  identifying: 'api_key',
  urls: { test: 'https://{site}.chargebee.com', live: 'https://{site}.chargebee.com' },
  types: Object.keys(readers),
  charge_types: ['payment_succeeded'],
  check,
  connect: async ({ credentials }) => ({ credentials, endpoint_id: null }),
  disconnect: async () => {},
  receive,
  envelope,
  events,
  // Chargebee keeps its events.
  history: events,
  movements: chargebeeMovements,
  createPromotion: createChargebeePromotion,
  find,
  read,
  ask: (account, { path, query }) => readProcessor(caller, atSite(account), `/api/v2${path}`, query),
};

async function check(account: Account): Promise<{ account: string; warnings: string[] }> {
  const { site = '' } = account.credentials;
  if (site.endsWith('-test') !== (account.mode === 'test'))
    throw new Problem(
      'invalid_parameter',
      account.mode === 'test'
        ? 'In test mode, the name of the site ends with -test.'
        : 'In live mode, send a site that is none for tests.',
      { param: 'site' },
    );
  await Promise.all(
    readable.map(async (path) => {
      const call = { path: `/api/v2${path}`, query: { limit: '1' } };
      const answer = await callProcessor(caller, atSite(account), call).catch(translated(title, 'api_key'));
      if (answer.status === 200) return;
      const words = `Chargebee refuses the key: ${messageOf(caller, answer, account)}`;
      throw new Problem('invalid_parameter', words, { param: answer.status === 404 ? 'site' : 'api_key' });
    }),
  );
  return { account: site, warnings: [] };
}

function receive(
  { headers, raw_body }: Delivery,
  { webhook_username, webhook_password }: Credentials,
): Envelope | undefined {
  if (webhook_username === undefined || webhook_password === undefined) throw unauthorized();
  const expected = `Basic ${Buffer.from(`${webhook_username}:${webhook_password}`).toString('base64')}`;
  if (!sameText(String(headers.authorization ?? ''), expected)) throw unauthorized();
  return envelope(parsedJson(raw_body.toString('utf8')));
}

const unauthorized = () => new DeliveryRefused('The user name or the password is not that of the webhook.');

function envelope(event: unknown): Envelope | undefined {
  const [external_event_id, type] = [textAt(event, 'id'), textAt(event, 'event_type')];
  const occurred = at(event, 'occurred_at');
  if (external_event_id === undefined || type === undefined || typeof occurred !== 'number')
    throw new DeliveryRefused('The body is not an event.');
  const reader = readers[type];
  if (!reader) return undefined;
  const content = at(event, 'content');
  const external_object_id = textAt(content, reader.about, 'id') ?? null;
  const external_customer_id = customerIn(content) ?? null;
  return requireEnvelope({
    ...{ external_event_id, type, rank: reader.rank, external_object_id, external_customer_id, livemode: null },
    occurred_at: timeOf(occurred),
    queue: external_customer_id ?? external_object_id ?? external_event_id,
  });
}

const customerIn = (content: unknown): string | undefined =>
  textAt(content, 'customer', 'id') ??
  textAt(content, 'transaction', 'customer_id') ??
  textAt(content, 'subscription', 'customer_id');

/** Takes from a webhook only whether it is worth asking. */
function read(body: unknown, answers: unknown[]): Reading {
  const id = textAt(body, 'id') ?? '';
  if (answers.length === 0) {
    const ask = [{ path: `/events/${encodeURIComponent(id)}` }];
    const content = at(body, 'content');
    // A request may have recorded the sale of a payment that is taken back, of whomever.
    return paymentOf(at(content, 'transaction')) === undefined ? { ask, worth_it_for: whoseIs(content) } : { ask };
  }
  const event = at(answers[0], 'event');
  if (event === undefined)
    return { kind: 'nothing', reason: 'unknown_event', message: 'Chargebee does not know the event.' };
  if (textAt(event, 'api_version') !== 'v2')
    return {
      kind: 'nothing',
      reason: 'unknown_version',
      message:
        'The event is not of version 2 of the API. Choose API version V2 for the webhook in Chargebee, then retry.',
    };
  const reader = readers[textAt(event, 'event_type') ?? ''];
  if (!reader) return { kind: 'nothing', reason: 'unknown_type', message: 'Events of this type have no effect.' };
  const time = timeOf(at(event, 'occurred_at'), reader.rank);
  return reader.read(at(event, 'content'), { at: time, answers });
}

function whoseIs(content: unknown): Attributable {
  const id = textAt(content, 'transaction', 'id');
  const invoices = partsOf(at(content, 'transaction')).flatMap(({ invoice }) => invoice ?? []);
  const payment_ids = id === undefined ? [] : [id, ...invoices.flatMap((invoice) => [invoice, chargeOf(invoice, id)])];
  const external_customer_id = customerIn(content) ?? null;
  return { external_customer_id, click_id: clickOf(content), by_coupon: true, payment_ids };
}

async function events(account: Account, since: string, from: string | null): Promise<Page> {
  return pageOfEvents(account, Math.floor(Date.parse(since) / 1000) - 1, from);
}

/** Lists events, oldest first, after a time in Unix seconds. */
async function pageOfEvents(
  account: Account,
  after: number,
  from: string | null,
  which: Record<string, string> = {},
): Promise<Page> {
  const query = {
    ...{ limit: '100', 'sort_by[asc]': 'occurred_at', 'occurred_at[after]': String(after), ...which },
    ...(from === null ? {} : { offset: from }),
  };
  const list = await readProcessor(caller, atSite(account), '/api/v2/events', query);
  return {
    events: listAt(list, 'list').map((entry) => at(entry, 'event')),
    next: textAt(list, 'next_offset') ?? null,
  };
}

/** The pages that an event is looked for in: it happened within minutes of its transaction. */
const most_pages = 50;

/** Looks for the event of a transaction among those from an hour before it on: Chargebee has no other list of them. */
async function find(account: Account, external_id: string): Promise<unknown[]> {
  const transaction = await transactionOf(account, external_id);
  const [id, date] = [textAt(transaction, 'id'), numberAt(transaction, 'date')];
  if (id === undefined || date === 0) return [];
  let from: string | null = null;
  for (let nth = 0; nth < most_pages; nth++) {
    const page: Page = await pageOfEvents(account, date - 3_600, from, { 'event_type[is]': 'payment_succeeded' });
    const found = page.events.filter((event) => textAt(event, 'content', 'transaction', 'id') === id);
    if (found.length > 0 || page.next === null) return found;
    from = page.next;
  }
  return [];
}

/** The transaction of an id, or of a charge `<invoice>_<transaction>`, both of which may have underscores. */
async function transactionOf(account: Account, external_id: string): Promise<unknown> {
  const words = external_id.split('_');
  for (const nth of words.keys()) {
    const id = words.slice(nth).join('_');
    const path = `/api/v2/transactions/${encodeURIComponent(id)}`;
    const found = id === '' ? undefined : await readProcessor(caller, atSite(account), path);
    if (found !== undefined) return at(found, 'transaction');
  }
  return undefined;
}
