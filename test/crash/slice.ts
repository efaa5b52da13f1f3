import { type Caller, eventually, type Json, type Rail, type Received, sql, startReceiver } from '../harness.ts';
import type { Statement } from '../processes.ts';

/** The effects of one visitor: a click, a customer, a sale, and the end of the holding period. */
export interface Slice {
  program_id: string;
  endpoint_id: string;
  merchant: Caller;
  receiver: Awaited<ReturnType<typeof startReceiver>>;
}

/** The access to the database and its clock. */
export type Looker = Pick<Rail, 'query' | 'tick'>;

const types = [
  'referral.created',
  'referral.lead',
  'sale.created',
  'commission.created',
  'referral.converted',
  'commission.updated',
];

/** A program with a rule, a partner whose handle is `ada`, and an endpoint. */
export async function openSlice(merchant: Caller): Promise<Slice> {
  const receiver = await startReceiver();
  const fields = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
  const { id: program_id } = await merchant.post('/v1/programs', fields);
  await merchant.post('/v1/rules', { program_id, name: 'Standard', rate_type: 'percent', rate_value: 2_000 });
  await merchant.post('/v1/partners', { program_id, email: 'ada@partner.example.com' });
  const endpoint = { program_id, url: receiver.url, event_types: types };
  const { id: endpoint_id } = await merchant.post('/v1/webhook_endpoints', endpoint);
  return { program_id, endpoint_id, merchant, receiver };
}

/** Goes through the slice, waiting at each step for what the worker has to do. However often that dies, all must come. */
export async function driveSlice(rail: Looker, { program_id, merchant, receiver }: Slice): Promise<void> {
  const arrived = (count: number) =>
    eventually(() => firstReceipts(receiver.received).length >= count, `${count} different webhooks`);
  const click = await merchant.post('/v1/clicks', {
    program_id,
    value: 'ada',
    landing_url: 'https://acme.example.com/pricing',
    visitor_token: 'visitor-0001',
  });
  await arrived(1);
  const customer = { program_id, click_id: click.id, email: 'grace@customer.example.com' };
  const { id: customer_id } = await merchant.post('/v1/customers', customer);
  const amount = { amount_minor: 9_900, currency: 'USD' };
  const sale = await merchant.post('/v1/sales', { program_id, customer_id, ...amount, external_charge_id: 'ch_0001' });
  await arrived(5);
  await rail.tick('program/mature_commissions', sale.commissions[0].mature_at);
  await arrived(6);
}

/** An endpoint may receive an event again: it knows it by its id. */
export const firstReceipts = (received: Received[]): string[] => [
  ...new Set(received.map(({ body }) => body.id as string)),
];

/** Returns the faults after a slice: none, whatever died on the way. */
export async function faultsOf(rail: Looker, { program_id, endpoint_id, receiver }: Slice): Promise<string[]> {
  await eventually(async () => (await restless(rail, endpoint_id)).length === 0, 'the end of all work');
  const events = await rail.query<{ id: string; type: string }>(
    sql`select id, type from webhooks.event where program_id = ${program_id} and type = any (${types}) order by position`,
  );
  const [counted] = await rail.query<Record<string, number>>(sql`
    select
      (select count(*) from program.click where program_id = ${program_id} and referral_id is not null) as clicks,
      (select count(*) from program.referral where program_id = ${program_id}) as referrals,
      (select count(*) from program.customer where program_id = ${program_id}) as customers,
      (select count(*) from program.sale where program_id = ${program_id}) as sales,
      (select count(*) from program.commission where program_id = ${program_id}) as commissions,
      (select count(*) from program.commission where program_id = ${program_id} and status = 'due') as due,
      (select count(*) from webhooks.delivery where endpoint_id = ${endpoint_id}) as deliveries,
      (select count(distinct event_id) from webhooks.delivery where endpoint_id = ${endpoint_id} and status = 'delivered' and attempt = 1) as delivered,
      (select count(*) from webhooks.attempt a join webhooks.delivery d on d.id = a.delivery_id where d.endpoint_id = ${endpoint_id}) as attempts`);
  const expected: Json = { clicks: 1, referrals: 1, customers: 1, sales: 1, commissions: 1, due: 1 };
  Object.assign(expected, { deliveries: types.length, delivered: types.length, attempts: types.length });
  return [
    ...differs(
      'events',
      events.map(({ type }) => type),
      types,
    ),
    ...differs(
      'first receipts',
      firstReceipts(receiver.received),
      events.map(({ id }) => id),
    ),
    ...differs('rows', counted, expected),
  ];
}

const differs = (what: string, found: unknown, expected: unknown): string[] => {
  const [is, should_be] = [JSON.stringify(found), JSON.stringify(expected)];
  return is === should_be ? [] : [`${what}: ${is} instead of ${should_be}`];
};

/** Jobs, events and deliveries that wait or are worked at, jobs that have given up included. */
const restless = (rail: Looker, endpoint_id: string): Promise<Json[]> =>
  rail.query(sql`
    select task_identifier as what from graphile_worker.jobs
    union all select 'event' from webhooks.pending_event
    union all select 'queued' from webhooks.queued_delivery where endpoint_id = ${endpoint_id}
    union all select 'lease' from webhooks.endpoint_queue where endpoint_id = ${endpoint_id} and leased_by is not null`);

/** Statements by which a worker looks for work, whether there is some or not. */
const idle_talk =
  /task_id = any|webhooks\.sweep|reap_dead_workers|4 hours|listen "|core\.schedule|scheduled_run|_private_tasks|claim_inboxes|imap_last_seen_at/i;

export const isWork = ({ text }: Statement): boolean => !idle_talk.test(text);

/** Returns whether an answer brought the worker jobs: they are locked from then on. */
export const bringsJobs = ({ text }: Statement, answer: Buffer | undefined): boolean =>
  /task_id = any/.test(text) && answer !== undefined && hasRows(answer);

/** Looks for a DataRow among the messages of an answer. */
function hasRows(answer: Buffer): boolean {
  for (let at = 0; at < answer.length; at += 1 + answer.readInt32BE(at + 1)) if (answer[at] === 0x44) return true;
  return false;
}
