import { request } from 'undici';
import { eventually, type Json, type Rail, sql } from '../../harness.ts';
import { type Process, startProcess } from '../../processes.ts';
import { deliver } from '../payouts/rails/provider_server.ts';
import { drawing, type Story, shuffled, storyOf } from './chaos_story.ts';
import type { StripeAccount } from './stripe_account.ts';
import { openStripeShop, type StripeShop } from './stripe_shop.ts';

/** The order of sales decides which of them pays. */
const rules = [
  { name: 'Bonus', applies_to: 'first', rate_type: 'fixed', rate_value: 500, priority: 10 },
  { name: 'Early', max_payments: 2, rate_value: 3_000, priority: 5 },
  {
    name: 'Tiers',
    rate_value: 1_000,
    priority: 2,
    tier_metric: 'sales_count',
    tiers: [{ from: 5, rate_value: 1_500 }],
  },
];

/** A program whose customers live the story, brought by two partners in turn. */
export async function open(
  rail: Rail,
  stripe: StripeAccount,
  { customers, ...plot }: { customers: number; seed: number; since: number },
): Promise<{ shop: StripeShop; story: Story }> {
  const shop = await openStripeShop(rail, stripe);
  const clicks: string[] = [];
  for (const rule of rules) await shop.rule(rule);
  const partners = [shop.partner_of, await shop.partner()];
  for (let nth = 0; nth < customers; nth++) clicks.push((await shop.click(partners[nth % 2] as Json)).id);
  return { shop, story: storyOf(stripe, clicks, plot) };
}

/** Waits until nothing is left to be done. */
export const idle = (rail: Rail): Promise<void> =>
  eventually(
    async () => {
      const [left] = await rail.query<{ left: number }>(sql`
        select (select count(*) from program.processor_event where status = 'pending')
          + (select count(*) from core.jobs() j where j.task like 'program/%' and j.state in ('ready', 'running', 'retrying')) as left`);
      return left?.left === 0;
    },
    'all events to be worked on',
    600_000,
  );

/** What counts of the ledger, in the processor's ids alone: partners by their order, rules by their names. */
export async function ledgerOf(rail: Rail, { program_id }: StripeShop): Promise<string[]> {
  const rows = await rail.query<{ row: string }>(sql`
    with partner as (
      select t.id, row_number() over (order by t.id) as nth from program.partner t where t.program_id = ${program_id}
    )
    select json_build_object(
      'charge', s.external_charge_id, 'amount', s.amount_minor, 'tax', s.tax_minor, 'currency', s.currency, 'status', s.status,
      'refunded', s.refunded_minor, 'is_first', s.is_first_sale, 'at', s.occurred_at, 'customer', c.external_customer_id, 'partner', p.nth,
      'commissions', (
        select json_agg(json_build_array(k.kind, k.amount_minor, k.status, l.name, k.rate_type, k.rate_value)
          order by k.kind, k.amount_minor, k.status)
        from program.commission k
        left join program.rule l on l.organization_id = k.organization_id and l.id = k.rule_id
        where k.organization_id = s.organization_id and k.sale_id = s.id and k.deleted_at is null and k.status <> 'voided'
      ),
      'refunds', (
        select json_agg(json_build_array(r.external_refund_id, r.amount_minor, r.reason, r.reversed_at is not null, r.reversal_reason) order by r.external_refund_id)
        from program.refund r where r.organization_id = s.organization_id and r.sale_id = s.id
      ),
      'disputes', (
        select json_agg(json_build_array(d.external_dispute_id, d.amount_minor, d.status, d.opened_at, d.closed_at) order by d.external_dispute_id)
        from program.dispute d where d.organization_id = s.organization_id and d.sale_id = s.id
      )
    )::text as row
    from program.sale s
    left join program.customer c on c.organization_id = s.organization_id and c.id = s.customer_id
    left join partner p on p.id = s.partner_id
    where s.program_id = ${program_id} and s.deleted_at is null
    union all
    select json_build_object(
      'customer', c.external_customer_id, 'status', c.status, 'email', c.email, 'subscription', c.external_subscription_id,
      'converted', c.converted_at is not null
    )::text
    from program.customer c
    where c.program_id = ${program_id}
    order by 1`);
  return rows.map(({ row }) => row);
}

/** Compares the ledger with the story itself, whatever the service did. @returns what differs */
export async function faultsOf(rail: Rail, { program_id }: StripeShop, { charges }: Story): Promise<string[]> {
  const sales = await rail.query<Json>(
    sql`select external_charge_id as id, amount_minor as amount, refunded_minor as refunded from program.sale where program_id = ${program_id}`,
  );
  const found = new Map(sales.map((sale) => [sale.id as string, sale]));
  const ids = new Set([...charges.keys(), ...found.keys()]);
  return [...ids].flatMap((id) => {
    const [is, must] = [found.get(id), charges.get(id)];
    const same = is?.amount === must?.amount && is?.refunded === must?.refunded;
    return same ? [] : [`${id}: ${JSON.stringify(is)} and not ${JSON.stringify(must)}`];
  });
}

export interface Havoc {
  seed: number;
  /** How often each the API and the worker are killed. */
  kills: number;
  /** Every so manieth event never arrives. */
  lost: number;
}

/** Delivers events in any order, each up to three times, some never, to processes that are killed meanwhile; what is lost is reconciled at the end. */
export async function unleash(
  rail: Rail,
  stripe: StripeAccount,
  shop: StripeShop,
  story: Story,
  havoc: Havoc,
): Promise<void> {
  const settings = { RAIL_STRIPE_URL: stripe.url };
  const draw = drawing(havoc.seed);
  const sent = shuffled(
    story.events
      .filter((_, nth) => nth % havoc.lost !== 0)
      .flatMap((event) => Array.from({ length: 1 + draw(3) }, () => event)),
    draw,
  );
  let api: Process = await startProcess('api', rail.url, settings);
  let worker: Process = await startProcess('worker', rail.url, settings);
  const killing = (async () => {
    for (let nth = 0; nth < havoc.kills; nth++) {
      await worker.end('SIGKILL');
      worker = await startProcess('worker', rail.url, settings);
      await api.end('SIGKILL');
      api = await startProcess('api', rail.url, settings);
    }
  })();
  const secret = stripe.endpoints.find(({ url }) => url.endsWith(shop.program_id))?.secret;
  const tell = async (event: Json): Promise<void> => {
    for (;;) {
      const url = `${api.url}/processors/stripe/${shop.program_id}`;
      const answer = await deliver(url, stripe.webhook(event, { secret })).catch(() => undefined);
      if (answer?.status === 200) return;
      if (answer && answer.status < 500) throw new Error(`${answer.status}: ${await answer.text()}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const senders = Array.from({ length: 8 }, async () => {
    for (let event = sent.pop(); event; event = sent.pop()) await tell(event);
  });
  await Promise.all([killing, ...senders]);
  await request(`${api.url}/readyz`).then(({ body }) => body.dump());
  // As if it had been compared last when the story began.
  await rail.query(
    sql`update program.processor set reconciled_to = now() - interval '29 days' where program_id = ${shop.program_id}`,
  );
  await rail.tick('program/reconcile_processors', new Date(Date.now() + 60_000).toISOString());
  await idle(rail);
  await api.end('SIGTERM');
  await worker.end('SIGTERM');
}
