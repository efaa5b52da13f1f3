import pg from 'pg';
import { raw, type Sql } from 'sql-template-tag';
import t from 'tap';
import { auditSession } from '../../src/commands/audit.ts';
import { audits } from '../../src/products.ts';
import { command } from '../command_process.ts';
import {
  encryption_key,
  eventually,
  type Json,
  log,
  type Received,
  sql,
  startRail,
  startReceiver,
  startWorker,
} from '../harness.ts';
import { spawnRail } from '../rail_process.ts';
import { openShop } from '../shop.ts';

const rail = await startRail({ audit: false, worker: false });
const worker = startWorker({ url: rail.url, store: rail.store, services: rail.services, concurrency: 4, log });
t.teardown(() => worker.stop());
await worker.ready;
const shop = await openShop(rail);
await shop.rule();
const partner = await shop.partner();
const receiver = await startReceiver();
const pending = await shop.partner({ status: 'pending' });
const endpoint = await shop.merchant.post('/v1/webhook_endpoints', { program_id: shop.program.id, url: receiver.url });

const customer = await shop.referred(partner);
const other = await shop.partner();
const link = await shop.link(other);
const of_other = await shop.sale({ partner_id: other.id });
const click = await shop.click(partner);
const sale = await shop.sale({ customer_id: customer.id });
const [earned] = sale.commissions;
const refunded = await shop.sale({ customer_id: customer.id });
await shop.refund(refunded);
const partly = await shop.sale({ customer_id: customer.id });
await shop.refund(partly, { amount_minor: 1_234 });
const paid = await shop.sale({ customer_id: customer.id });
await shop.pay(paid.commissions[0]);
await shop.refund(paid);
const { payout_id } = (await shop.commissionsOf(paid))[0] as Json;
const gone = await shop.sale({ customer_id: customer.id });
await shop.merchant.delete(`/v1/sales/${gone.id}`);
const disputed = await shop.sale({ customer_id: customer.id });
await shop.merchant.post('/v1/disputes', { sale_id: disputed.id });
const lost = await shop.merchant.post('/v1/disputes', { sale_id: (await shop.sale({ customer_id: customer.id })).id });
await shop.merchant.post(`/v1/disputes/${lost.id}/close`, { outcome: 'lost' });
const deleted = await shop.partner();
const of_deleted = await shop.sale({ partner_id: deleted.id });
await shop.merchant.delete(`/v1/partners/${deleted.id}`);
const erased = await shop.customer({ partner_id: partner.id });
await shop.merchant.delete(`/v1/customers/${erased.id}`);
const { id: last } = await shop.partner();
await receiver.until(10);
const delivered = () => receiver.received.some(({ body }) => body.data.partner_id === last);
while (!delivered()) await receiver.until(receiver.received.length + 1);

/** Writes what the constraints of payouts would refuse. */
async function unchecked(statement: Sql): Promise<void> {
  const triggers = (action: 'disable' | 'enable') =>
    Promise.all([
      rail.query(raw(`alter table program.payout ${action} trigger payout_adds_up`)),
      rail.query(raw(`alter table program.commission ${action} trigger commission_changes_payout`)),
    ]);
  await triggers('disable');
  await rail.query(statement);
  await triggers('enable');
}

const visits = () => shop.list('referrals', 'status=visit');
await eventually(async () => (await visits()).length === 1, 'the referral of the click');
const [visit] = (await visits()) as [Json];
const [{ body: told }] = receiver.received as [Received];
// It would repair what is corrupted below: an event that waits to be fanned out stays so for a second.
await worker.stop();

t.test('data written by the API passes the audit', async (t) => {
  t.same(await rail.audit(), []);
});

/** Changes commissions as a person may. */
const setByHand = (set: Sql, which: Sql): Promise<unknown> =>
  rail.query(sql`update program.commission set ${set} where ${which} and program.because('edited_by_hand')`);

/** An event about the payment `pi_1`, which is that object. */
async function inInbox({ id, status, waiting_for, object_id }: Json): Promise<void> {
  const { organization_id } = shop.merchant;
  await rail.query(sql`
    insert into program.processor_object (organization_id, program_id, processor, external_id, object_id, as_of, created_at, updated_at)
    values (${organization_id}, ${shop.program_id}, 'stripe', 'pi_1', ${object_id}, now(), now(), now())`);
  await rail.query(sql`
    insert into program.processor_event
      (organization_id, id, program_id, processor, external_event_id, type, external_object_id, livemode, occurred_at, rank, queue, run_id,
        status, waiting_for, reason, body, worked_at, created_at, updated_at)
    values (${organization_id}, ${id}, ${shop.program_id}, 'stripe', ${id}, 'invoice.paid', 'pi_1', true, now(), 5, 'pi_1', 'run_1',
      ${status}, ${waiting_for}, 'unattributed', '{}', now(), now(), now())`);
}

async function emptyInbox(): Promise<void> {
  await rail.query(sql`delete from program.processor_event`);
  await rail.query(sql`delete from program.processor_object`);
}

/** Statements that break each invariant, and that restore it. */
const corruptions: Record<
  string,
  {
    organization_id?: string;
    subject: string | undefined;
    breaks: () => Promise<unknown>;
    mends: () => Promise<unknown>;
  }
> = {
  'commissions of a sale are its copied rate of what is left': {
    subject: sale.id,
    breaks: () => setByHand(sql`amount_minor = amount_minor + 1`, sql`id = ${earned.id}`),
    mends: () => setByHand(sql`amount_minor = amount_minor - 1`, sql`id = ${earned.id}`),
  },
  'nothing is earned by what was refunded whole': {
    subject: refunded.id,
    breaks: () => setByHand(sql`status = 'due'`, sql`sale_id = ${refunded.id}`),
    mends: () => setByHand(sql`status = 'voided'`, sql`sale_id = ${refunded.id}`),
  },
  'a partner earns nothing by their own purchase': {
    subject: sale.id,
    breaks: () =>
      rail.query(sql`update program.sale set self_referral_partner_id = ${partner.id} where id = ${sale.id}`),
    mends: () => rail.query(sql`update program.sale set self_referral_partner_id = null where id = ${sale.id}`),
  },
  'a deleted sale has earned nothing': {
    subject: gone.id,
    breaks: () => setByHand(sql`deleted_at = null`, sql`sale_id = ${gone.id}`),
    mends: () => setByHand(sql`deleted_at = now()`, sql`sale_id = ${gone.id}`),
  },
  'what is refunded of a sale is the sum of its refunds': {
    subject: partly.id,
    breaks: () =>
      rail.query(sql`update program.refund set amount_minor = amount_minor + 1 where sale_id = ${partly.id}`),
    mends: () =>
      rail.query(sql`update program.refund set amount_minor = amount_minor - 1 where sale_id = ${partly.id}`),
  },
  'unpaid commissions of a disputed sale are on hold, and no others are so by a dispute': {
    subject: disputed.commissions[0].id,
    breaks: () => setByHand(sql`status = 'due', hold_reason = null, held_at = null`, sql`sale_id = ${disputed.id}`),
    mends: () =>
      setByHand(sql`status = 'on_hold', hold_reason = 'dispute', held_at = now()`, sql`sale_id = ${disputed.id}`),
  },
  'an event of a processor waits for what is not known': {
    subject: 'pev_waiting',
    breaks: () => inInbox({ id: 'pev_waiting', status: 'waiting', waiting_for: 'pi_1', object_id: null }),
    mends: emptyInbox,
  },
  'what a charge at a processor is here exists': {
    subject: shop.program_id,
    breaks: () => inInbox({ id: 'pev_done', status: 'done', waiting_for: null, object_id: 'sale_of_nobody' }),
    mends: emptyInbox,
  },
  'a sale is what its id is at the processor': {
    subject: sale.id,
    breaks: async () => {
      await rail.query(sql`update program.program set processor = 'stripe' where id = ${shop.program_id}`);
      await rail.query(sql`
        insert into program.processor_object (organization_id, program_id, processor, external_id, as_of, created_at, updated_at)
        values (${shop.merchant.organization_id}, ${shop.program_id}, 'stripe', ${sale.external_charge_id}, now(), now(), now())`);
    },
    mends: async () => {
      await rail.query(sql`update program.program set processor = null where id = ${shop.program_id}`);
      await emptyInbox();
    },
  },
  'a charge that is a sale is not kept as one of nobody': {
    subject: 'pev_ignored',
    breaks: () => inInbox({ id: 'pev_ignored', status: 'ignored', waiting_for: null, object_id: sale.id }),
    mends: emptyInbox,
  },
  'only the refund of a lost dispute stands': {
    subject: lost.id,
    breaks: () => rail.query(sql`update program.dispute set status = 'won' where id = ${lost.id}`),
    mends: () => rail.query(sql`update program.dispute set status = 'lost' where id = ${lost.id}`),
  },
  "a sale's status follows from its refunds": {
    subject: partly.id,
    breaks: () => rail.query(sql`update program.sale set status = 'paid' where id = ${partly.id}`),
    mends: () => rail.query(sql`update program.sale set status = 'partially_refunded' where id = ${partly.id}`),
  },
  "what a sale earned is its partner's alone": {
    subject: sale.id,
    breaks: () => rail.query(sql`update program.commission set partner_id = ${other.id} where id = ${earned.id}`),
    mends: () => rail.query(sql`update program.commission set partner_id = ${partner.id} where id = ${earned.id}`),
  },
  'a commission of a sale is in its currency and its program': {
    subject: earned.id,
    breaks: () => rail.query(sql`update program.commission set currency = 'EUR' where id = ${earned.id}`),
    mends: () => rail.query(sql`update program.commission set currency = 'USD' where id = ${earned.id}`),
  },
  'a clawback takes back of what its partner earned by its sale': {
    subject: undefined,
    breaks: () => rail.query(sql`update program.commission set clawback_of = ${earned.id} where kind = 'clawback'`),
    mends: () =>
      rail.query(sql`update program.commission set clawback_of = ${paid.commissions[0].id} where kind = 'clawback'`),
  },
  'a flag about an erased customer holds no evidence': {
    subject: 'rsk_x',
    breaks: () =>
      rail.query(sql`
        insert into program.risk_flag (organization_id, id, program_id, customer_id, kind, severity, evidence, created_at, updated_at)
        values (${shop.merchant.organization_id}, 'rsk_x', ${shop.program_id}, ${erased.id}, 'disposable_email', 'low', '{"host": "a"}', now(), now())`),
    mends: () => rail.query(sql`delete from program.risk_flag where id = 'rsk_x'`),
  },
  "a sale's net amount is its amount less its parts": {
    subject: sale.id,
    breaks: () => rail.query(sql`update program.sale set fee_minor = 1 where id = ${sale.id}`),
    mends: () => rail.query(sql`update program.sale set fee_minor = 0 where id = ${sale.id}`),
  },
  'a payout is the sum of its commissions': {
    subject: payout_id,
    breaks: () => unchecked(sql`update program.payout set amount_minor = amount_minor + 1 where id = ${payout_id}`),
    mends: () => rail.query(sql`update program.payout set amount_minor = amount_minor - 1 where id = ${payout_id}`),
  },
  'a commission is in a payout that exists': {
    subject: of_other.commissions[0].id,
    breaks: () =>
      unchecked(
        sql`update program.commission set status = 'due', payout_id = 'pyt_x' where id = ${of_other.commissions[0].id} and program.because('edited_by_hand')`,
      ),
    mends: () =>
      unchecked(
        sql`update program.commission set status = 'pending', payout_id = null where id = ${of_other.commissions[0].id}`,
      ),
  },
  "a payout's commissions are those that name it": {
    subject: of_other.commissions[0].id,
    breaks: () =>
      rail.query(sql`
        insert into program.payout_commission (organization_id, payout_id, commission_id)
        values (${shop.merchant.organization_id}, 'pyt_x', ${of_other.commissions[0].id})`),
    mends: () => rail.query(sql`delete from program.payout_commission where payout_id = 'pyt_x'`),
  },
  "a payout is of its batch's program": {
    subject: undefined,
    breaks: async () => {
      const { program_id } = await openShop(rail, { name: 'Other' }, shop.merchant);
      await rail.query(sql`update program.payout_batch set program_id = ${program_id}`);
    },
    mends: async () => {
      await rail.query(sql`update program.payout_batch set program_id = ${shop.program_id}`);
      await rail.query(sql`delete from program.program where name = 'Other'`);
    },
  },
  'a batch that is deleted has no payout that was sent': {
    subject: payout_id,
    breaks: () => rail.query(sql`update program.payout_batch set deleted_at = now()`),
    mends: () => rail.query(sql`update program.payout_batch set deleted_at = null`),
  },
  'a payout of a batch has its partner and currency alone': {
    subject: undefined,
    breaks: () =>
      unchecked(sql`
        insert into program.payout
        select (jsonb_populate_record(p, jsonb_build_object('id', 'pyt_twin', 'attempt', 0, 'status', 'pending', 'paid_at', null,
          'deleted_at', now()))).*
        from program.payout p where p.id = ${payout_id}`),
    mends: () => rail.query(sql`delete from program.payout where id = 'pyt_twin'`),
  },
  'a payout was attempted as often as it counts': {
    subject: payout_id,
    breaks: () => rail.query(sql`update program.payout set attempt = attempt + 1 where id = ${payout_id}`),
    mends: () => rail.query(sql`update program.payout set attempt = attempt - 1 where id = ${payout_id}`),
  },
  'a payout in processing has an attempt that is open': {
    subject: payout_id,
    breaks: () =>
      unchecked(sql`update program.payout set status = 'processing', paid_at = null where id = ${payout_id}`),
    mends: () => unchecked(sql`update program.payout set status = 'paid', paid_at = now() where id = ${payout_id}`),
  },
  'what a rail paid settles its payout, or is taken back': {
    subject: `${payout_id}-1`,
    breaks: () => unchecked(sql`update program.payout set status = 'pending', paid_at = null where id = ${payout_id}`),
    mends: () => unchecked(sql`update program.payout set status = 'paid', paid_at = now() where id = ${payout_id}`),
  },
  'a payout is settled by one attempt': {
    subject: payout_id,
    breaks: () =>
      unchecked(sql`
        insert into program.payout_attempt
        select (jsonb_populate_record(a, jsonb_build_object('id', 'pyt_twin-2', 'number', 2))).*
        from program.payout_attempt a where a.payout_id = ${payout_id}`),
    mends: () => rail.query(sql`delete from program.payout_attempt where id = 'pyt_twin-2'`),
  },
  'nobody is sent an amount that differs from the payout': {
    subject: `${payout_id}-1`,
    breaks: () => rail.query(sql`update program.payout_attempt set amount_minor = amount_minor + 1`),
    mends: () => rail.query(sql`update program.payout_attempt set amount_minor = amount_minor - 1`),
  },
  'a voided commission says when and why': {
    subject: refunded.commissions[0].id,
    breaks: () => rail.query(sql`update program.commission set voided_at = null where sale_id = ${refunded.id}`),
    mends: () => rail.query(sql`update program.commission set voided_at = now() where sale_id = ${refunded.id}`),
  },
  'a partner who is deleted has no open commission': {
    subject: of_deleted.commissions[0].id,
    breaks: () => setByHand(sql`status = 'due'`, sql`sale_id = ${of_deleted.id}`),
    mends: () => setByHand(sql`status = 'voided'`, sql`sale_id = ${of_deleted.id}`),
  },
  "one partner's one commission a sale": {
    subject: sale.id,
    breaks: async () => {
      await rail.query(sql`drop index program.commission_one_a_sale`);
      await rail.query(sql`
        update program.commission set sale_id = ${sale.id}, status = 'due', amount_minor = 0 where id = ${refunded.commissions[0].id} and program.because('edited_by_hand')`);
    },
    mends: () =>
      rail.query(sql`
        update program.commission set sale_id = ${refunded.id}, status = 'voided', amount_minor = 2000 where id = ${refunded.commissions[0].id} and program.because('edited_by_hand')`),
  },
  'a customer has one first sale': {
    subject: customer.id,
    breaks: async () => {
      await rail.query(sql`drop index program.sale_one_first_a_customer`);
      await rail.query(sql`update program.sale set is_first_sale = true where id = ${partly.id}`);
    },
    mends: () => rail.query(sql`update program.sale set is_first_sale = false where id = ${partly.id}`),
  },
  'a referral with a customer is no mere visit': {
    subject: customer.referral_id,
    breaks: () => rail.query(sql`update program.referral set status = 'visit' where id = ${customer.referral_id}`),
    mends: () => rail.query(sql`update program.referral set status = 'converted' where id = ${customer.referral_id}`),
  },
  'a referral that is more than a visit has a customer': {
    subject: visit.id,
    breaks: () => rail.query(sql`update program.referral set status = 'lead' where id = ${visit.id}`),
    mends: () => rail.query(sql`update program.referral set status = 'visit' where id = ${visit.id}`),
  },
  "a click is credited to the visitor's referral of its partner": {
    subject: click.id,
    breaks: () =>
      rail.query(sql`update program.click set referral_id = ${customer.referral_id} where id = ${click.id}`),
    mends: () => rail.query(sql`update program.click set referral_id = ${visit.id} where id = ${click.id}`),
  },
  'a pending partner is in the review queue, and nobody else': {
    subject: pending.id,
    breaks: () => rail.query(sql`update program.partner set status = 'active' where id = ${pending.id}`),
    mends: () => rail.query(sql`update program.partner set status = 'pending' where id = ${pending.id}`),
  },
  'a handle or link value has one partner': {
    subject: link.id,
    breaks: () => rail.query(sql`update program.link set value = upper(${partner.handle}) where id = ${link.id}`),
    mends: () => rail.query(sql`update program.link set value = ${link.value} where id = ${link.id}`),
  },
  "a partner's currency is the program's": {
    subject: partner.id,
    breaks: () => rail.query(sql`update program.partner set currency = 'EUR' where id = ${partner.id}`),
    mends: () => rail.query(sql`update program.partner set currency = 'USD' where id = ${partner.id}`),
  },
  'a program has one default group': {
    subject: shop.program.id,
    breaks: () => rail.query(sql`update program.partner_group set is_default = false`),
    mends: () => rail.query(sql`update program.partner_group set is_default = true`),
  },
  'a visitor has one live referral': {
    subject: undefined,
    breaks: async () => {
      await rail.query(sql`drop index program.referral_one_a_visitor`);
      await rail.query(sql`
        insert into program.referral
        select (jsonb_populate_record(r, jsonb_build_object('id', 'ref_twin'))).* from program.referral r where r.id = ${customer.referral_id}`);
    },
    mends: () => rail.query(sql`delete from program.referral where id = 'ref_twin'`),
  },
  'a tally is what its table holds': {
    subject: partner.id,
    breaks: () => noteEarnings(1),
    mends: () => noteEarnings(-1),
  },
  'an event is delivered to an endpoint once': {
    subject: endpoint.id,
    breaks: () =>
      twoDeliveries(sql`event_id = (select event_id from webhooks.delivery where queue_position = ${nth(0)})`),
    mends: () => undoDeliveries(),
  },
  'deliveries have queue positions of their own': {
    subject: endpoint.id,
    breaks: () => twoDeliveries(sql`queue_position = ${nth(0)}`),
    mends: () => undoDeliveries(),
  },
  'what waits to be sent is queued, and nothing else': {
    subject: undefined,
    breaks: () => twoDeliveries(sql`status = 'pending'`),
    mends: () => undoDeliveries(),
  },
  'a queued delivery was not passed over': {
    subject: undefined,
    breaks: () =>
      rail.query(sql`
        insert into webhooks.queued_delivery (endpoint_id, queue_position, organization_id, delivery_id, event_id, event_type)
        values (${endpoint.id}, 0, ${shop.merchant.organization_id}, 'whd_passed', 'evt_passed', 'sale.created')`),
    mends: () => rail.query(sql`delete from webhooks.queued_delivery where queue_position = 0`),
  },
  'events have positions of their own': {
    subject: undefined,
    breaks: () =>
      rail.query(sql`
        insert into webhooks.event
        select (jsonb_populate_record(e, jsonb_build_object('id', 'evt_twin'))).* from webhooks.event e where e.id = ${told.id}`),
    mends: () => rail.query(sql`delete from webhooks.event where id = 'evt_twin'`),
  },
  'what waits to be fanned out is logged': {
    subject: 'evt_lost',
    breaks: () =>
      rail.query(sql`
        insert into webhooks.pending_event (position, organization_id, event_id, program_id, type, for_partner)
        values (0, ${shop.merchant.organization_id}, 'evt_lost', 'prg_none', 'affiliate.created', false)`),
    mends: () => rail.query(sql`delete from webhooks.pending_event where event_id = 'evt_lost'`),
  },
  'an event goes to every endpoint that wants it': {
    subject: told.id,
    breaks: async () => {
      await rail.query(sql`
        update webhooks.event set created_at = created_at + interval '2 minutes'
        where id in (select event_id from webhooks.delivery)`);
      t.same(await rail.audit(), [], 'all of them went to the endpoint');
      await rail.query(sql`update webhooks.delivery set event_id = 'evt_other' where event_id = ${told.id}`);
    },
    mends: () => rail.query(sql`update webhooks.delivery set event_id = ${told.id} where event_id = 'evt_other'`),
  },
  'every table of an organization is protected by row-level security': {
    organization_id: '',
    subject: 'program.click_default',
    breaks: () => rail.query(sql`alter table program.click_default disable row level security`),
    mends: () => rail.query(sql`alter table program.click_default enable row level security`),
  },
  "the API's role may do what it must, and no more": {
    organization_id: '',
    subject: 'program.sale',
    breaks: () => rail.query(sql`grant truncate on program.sale to rail_api`),
    mends: () => rail.query(sql`revoke truncate on program.sale from rail_api`),
  },
  'an entry of the audit log names a key and a person of its organization': {
    subject: undefined,
    breaks: () => changeEntry(sql`api_key_id = 'key_other' || api_key_id`),
    mends: () => changeEntry(sql`api_key_id = replace(api_key_id, 'key_other', '')`),
  },
  'a request in the audit log was made by somebody': {
    subject: undefined,
    breaks: () => changeEntry(sql`api_key_id = null, user_id = null, object_id = api_key_id || ' ' || user_id`),
    mends: () => changeEntry(sql`api_key_id = split_part(object_id, ' ', 1), user_id = split_part(object_id, ' ', 2)`),
  },
  'attempts are counted': {
    subject: undefined,
    breaks: () => twoDeliveries(sql`attempt = 3`),
    mends: () => undoDeliveries(),
  },
};

const nth = (n: number) =>
  sql`(select queue_position from webhooks.delivery where endpoint_id = ${endpoint.id} order by queue_position offset ${n} limit 1)`;

/** Changes the entry of the program. */
const changeEntry = (change: ReturnType<typeof sql>) =>
  rail.query(sql`
    update core.audit_entry set ${change}
    where (organization_id, id) = (
      select organization_id, id from core.audit_entry
      where organization_id = ${shop.merchant.organization_id} and operation = 'programs.create' order by id limit 1
    )`);

const noteEarnings = (amount_minor: number) =>
  rail.query(sql`
    insert into program.tally (organization_id, subject_id, noun, kind, rows, amount_minor)
    values (${shop.merchant.organization_id}, ${partner.id}, 'commission', 'USD', 0, ${amount_minor})
    on conflict (organization_id, subject_id, noun, kind) do update set amount_minor = tally.amount_minor + excluded.amount_minor`);

async function twoDeliveries(change: ReturnType<typeof sql>): Promise<void> {
  await rail.query(
    sql`create table if not exists public.untouched as select id, event_id, queue_position, status, attempt from webhooks.delivery`,
  );
  await rail.query(sql`update webhooks.delivery set ${change} where queue_position = ${nth(1)}`);
}

const undoDeliveries = () =>
  rail.query(sql`
    update webhooks.delivery d set event_id = u.event_id, queue_position = u.queue_position, status = u.status, attempt = u.attempt
    from public.untouched u where u.id = d.id`);

/** These read the catalogue, which does not grow with the data. */
const of_catalogue = ['core.audit', 'core.audit_partitions', 'data.audit'];
const functions = await rail.query<{ name: string; text: string }>(
  sql`select name, pg_get_functiondef(name::regproc) as text from unnest(${audits}::text[]) as name`,
);
const auditor = new pg.Client({ connectionString: rail.url });
await auditor.connect();
t.teardown(() => auditor.end());

/** Returns the findings of the audits that look for an invariant. */
async function findingsOf(invariant: string): Promise<Json[]> {
  const those = functions.filter(({ text }) => text.includes(`'${invariant.replaceAll("'", "''")}'`));
  await auditor.query(auditSession);
  const found: Json[] = [];
  for (const { name } of those) found.push(...(await auditor.query(`select * from ${name}()`)).rows);
  await auditor.query('rollback');
  return found;
}

for (const [invariant, { organization_id = shop.merchant.organization_id, subject, breaks, mends }] of Object.entries(
  corruptions,
)) {
  t.test(`the audit notices when it does not hold that ${invariant}`, async (t) => {
    await breaks();
    const found = await findingsOf(invariant);
    t.match(
      found.find((one) => one.invariant === invariant),
      {
        organization_id,
        ...(subject === undefined ? {} : { subject_id: subject }),
      },
    );
    await mends();
    t.same(await findingsOf(invariant), [], 'and is content when it holds again');
  });
}

t.test('the whole audit is content when all of them hold again', async (t) => {
  t.same(await rail.audit(), []);
});

t.test('the audit reports a commission that was voided although its sale is not fully refunded', async (t) => {
  const [{ id }] = partly.commissions;
  await rail.query(sql`
    update program.commission set status = 'voided', voided_at = now(), void_reason = 'sale_refunded' where id = ${id} and program.because('edited_by_hand')`);
  t.match(await rail.audit(), [
    { subject_id: partly.id, invariant: 'commissions of a sale are its copied rate of what is left' },
  ]);
  await rail.query(sql`
    update program.commission set status = 'pending', voided_at = null, void_reason = null where id = ${id} and program.because('edited_by_hand')`);
  t.same(await rail.audit(), []);
});

t.test('the audit recounts what a partner sold in a month, on which tiers depend', async (t) => {
  const month = sql`program.month_of(${partner.id}, now())`;
  await rail.query(sql`
    insert into program.tally (organization_id, subject_id, noun, kind, rows, amount_minor)
    values (${shop.merchant.organization_id}, ${month}, 'sale', 'USD', 1, 100)
    on conflict (organization_id, subject_id, noun, kind) do update set rows = tally.rows + 1`);
  t.match(await rail.audit(), [
    { invariant: 'a tally is what its table holds', subject_id: RegExp(`^${partner.id} `) },
  ]);
  await rail.query(sql`
    update program.tally set rows = rows - 1, amount_minor = amount_minor - case when rows = 1 then 100 else 0 end where subject_id = ${month}`);
  t.same(await rail.audit(), []);
});

t.test('every invariant of the audit is broken by a test', async (t) => {
  const [program] = await rail.query<Json>(
    sql`
      select pg_get_functiondef('program.audit'::regproc) || pg_get_functiondef('program.audit_tallies'::regproc)
        || pg_get_functiondef('program.audit_tracking_values'::regproc) || pg_get_functiondef('program.audit_payouts'::regproc) || pg_get_functiondef('webhooks.audit'::regproc)
        || pg_get_functiondef('program.audit_processors'::regproc)
        || pg_get_functiondef('core.audit'::regproc) || pg_get_functiondef('core.audit_entries'::regproc) as text`,
  );
  const known = [...(program as Json).text.matchAll(/^ *select '((?:[^']|'')+)', /gm)].map(([, name]) =>
    name.replaceAll("''", "'"),
  );
  t.ok(known.length >= 30);
  t.same(known.sort(), Object.keys(corruptions).sort());
});

t.test('rail audit exits with 0 if clean, or lists violations and exits with 1', async (t) => {
  const environment = { DATABASE_URL: rail.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };
  t.match(await command(['audit'], environment), { code: 0, stdout: 'clean\n' });
  t.match(await command(['audit', '--json'], environment), { code: 0, stdout: '[]\n' });
  await corruptions["a sale's status follows from its refunds"]?.breaks();
  const { code, stdout } = await command(['audit'], environment);
  t.equal(code, 1);
  t.match(
    stdout,
    new RegExp(
      `^INVARIANT +ORGANIZATION +SUBJECT +DETAIL\\na sale's status follows from its refunds  org_\\w+  ${partly.id}  it is paid`,
    ),
  );
  const asked = await command(['audit', '--json'], environment);
  t.equal(asked.code, 1);
  t.match(JSON.parse(asked.stdout), [{ subject_id: partly.id }]);
});

interface Plan {
  'Node Type': string;
  'Subplan Name'?: string;
  Plans?: Plan[];
}

/** A list of values of a row: it reads nothing. */
const isOfValues = ({ 'Node Type': node, Plans: plans = [] }: Plan): boolean =>
  node === 'Values Scan' || (node === 'Result' && plans.length === 0) || (node === 'Append' && plans.every(isOfValues));

/** Returns the parts of a plan that run once for each row of something else: quadratic, unless it is a list of values of that row. */
const perRow = (plan: Plan): Plan[] => [
  ...(plan['Node Type'] === 'Nested Loop' ? (plan.Plans ?? []).slice(1).filter((inner) => !isOfValues(inner)) : []),
  ...(plan['Subplan Name']?.startsWith('SubPlan') ? [plan] : []),
  ...(plan.Plans ?? []).flatMap(perRow),
];

t.test('no plan of the audit goes through a table once for each row of another', async (t) => {
  const client = new pg.Client({ connectionString: rail.url });
  await client.connect();
  await client.query(auditSession);
  for (const audit of audits.filter((one) => !of_catalogue.includes(one))) {
    const { rows } = await client.query(`explain (format json) select * from ${audit}()`);
    const [{ Plan: plan }] = rows[0]['QUERY PLAN'];
    t.not(
      plan['Node Type'],
      'Function Scan',
      `Postgres plans ${audit} as a part of its statement, so that rows come as they are found`,
    );
    t.same(perRow(plan), [], audit);
  }
  await client.end();
});

t.test('no statement of the audit outlives its command, however that ends', async (t) => {
  const environment = { DATABASE_URL: rail.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };
  const blocking = new pg.Client({ connectionString: rail.url });
  await blocking.connect();
  await blocking.query('begin; lock table webhooks.event in access exclusive mode');
  const running = async () =>
    (
      await rail.query(
        sql`select from pg_stat_activity where datname = current_database() and application_name = 'rail audit' and wait_event_type = 'Lock'`,
      )
    ).length;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGKILL'] as const) {
    const audit = spawnRail(t, ['audit'], environment);
    await eventually(async () => (await running()) === 1, 'the audit to wait for the table');
    const { code, stdout, stderr } = await audit.stop(signal);
    if (signal !== 'SIGKILL')
      t.match({ code, stderr }, { code: 130, stderr: /^rail: Interrupted: the audit is not complete\.$/m });
    t.notMatch(stdout, 'clean');
    await eventually(async () => (await running()) === 0, `the statement to end after ${signal}`);
  }
  await blocking.end();
});
