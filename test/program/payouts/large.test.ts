import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { effort } from '../../runner/effort.ts';
import { openShop, type Shop } from '../../shop.ts';
import { batchOf, payee, setRail } from './fixture.ts';

const rail = await startRail();
t.setTimeout(50 * 60_000);
const commissions = effort.commissions_of_payout;
/** For a worker to change all of them: a hundred thousand take minutes, more on a busy machine. */
const within_ms = 600_000;

/** A payout once the worker has done what was requested, or a report has said. */
async function settled({ merchant }: Shop, { id }: Json, status: string): Promise<Json> {
  let payout: Json = {};
  const isSettled = async () => {
    payout = await merchant.get(`/v1/payouts/${id}`);
    return payout.status === status && payout.in_progress === null;
  };
  await eventually(isSettled, `the payout to be ${status}`, within_ms);
  return payout;
}

/** Gives a partner bonuses that are due, in one statement. */
const earn = ({ merchant, program_id }: Shop, { id }: Json, count: number, { status = 'due', from = 1 } = {}) =>
  rail.query(sql`
    insert into program.commission (
      organization_id, id, program_id, partner_id, kind, amount_minor, currency, status, mature_at, created_at, updated_at
    )
    select ${merchant.organization_id}, 'com_' || core.id_time_part(now()) || 'e00g' || lpad(n::text, 12, '0'), ${program_id}, ${id}, 'bonus', 10,
      'USD', ${status}, now(), now(), now()
    from generate_series(${from}::integer, ${from + count - 1}) as n`);

const statusesOf = ({ program_id }: Shop) =>
  rail.query(sql`
    select status, count(*)::integer as count, count(payout_id)::integer as held from program.commission where program_id = ${program_id} group by status`);

const told = async ({ program_id }: Shop) =>
  Object.fromEntries(
    (
      await rail.query(
        sql`select type, count(*)::integer as count from webhooks.event where program_id = ${program_id} group by type`,
      )
    ).map(({ type, count }) => [type, count]),
  );

t.test(
  `sends, pays, returns and deletes a payout of ${commissions} commissions`,
  { timeout: 4 * within_ms },
  async (t) => {
    const shop = await openShop(rail);
    const ada = await payee(shop, []);
    await setRail(rail, shop, 'bank_transfer', { name: 'Acme', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' });
    await earn(shop, ada, commissions);
    const batch = await batchOf(shop);
    const [payout] = (await shop.list('payouts')) as [Json];
    t.match(payout, { commission_count: commissions, in_progress: null });
    await shop.merchant.post(`/v1/payouts/${payout.id}/send`);
    const file = (await shop.merchant.get(`/v1/payout_batches/${batch.id}`)).files[0].message_id;
    const report = `<Document><CstmrPmtStsRpt><OrgnlGrpInfAndSts><OrgnlMsgId>${file}</OrgnlMsgId></OrgnlGrpInfAndSts>
    <OrgnlPmtInfAndSts><TxInfAndSts><OrgnlEndToEndId>${payout.id.replace('_', '-')}-1</OrgnlEndToEndId><TxSts>ACSC</TxSts></TxInfAndSts></OrgnlPmtInfAndSts>
    </CstmrPmtStsRpt></Document>`;
    t.match(await shop.merchant.post(`/v1/payout_batches/${batch.id}/statuses`, { document: report }), {
      state: 'running',
      applied: [],
    });
    await settled(shop, payout, 'paid');
    // Until then its job may hold the batch, and a change of the payout be refused for a moment.
    const reports = async () => (await shop.merchant.get(`/v1/payout_batches/${batch.id}/statuses`)).data;
    await eventually(async () => (await reports())[0].state === 'done', 'the report to be applied', within_ms);
    t.same(await statusesOf(shop), [{ status: 'paid', count: commissions, held: commissions }]);

    // On a busy machine a transaction of so many rows lets go of them seconds after others see what it did: "Try again in a few seconds."
    let back: Json = {};
    const isTaken = async () => {
      back = await shop.merchant.request('POST', `/v1/payouts/${payout.id}/mark_returned`, {
        reason: 'Account closed',
      });
      return back.status !== 409;
    };
    await eventually(isTaken, 'the return to be taken');
    t.match(back, { status: 200, body: { status: 'paid', in_progress: 'mark_returned' } });
    t.match(await shop.merchant.request('POST', `/v1/payouts/${payout.id}/mark_returned`), {
      status: 409,
      body: { error: { code: 'payout_locked' } },
    });
    const returned = await settled(shop, payout, 'failed');
    t.match(returned, { error_code: 'returned', error_message: 'Account closed', in_progress: null });
    t.same(await statusesOf(shop), [{ status: 'due', count: commissions, held: commissions }]);

    await shop.merchant.delete(`/v1/payouts/${payout.id}`);
    await eventually(
      async () => (await shop.merchant.request('GET', `/v1/payouts/${payout.id}`)).status === 404,
      'the payout to be deleted',
      within_ms,
    );
    t.same(await statusesOf(shop), [{ status: 'due', count: commissions, held: 0 }]);
    t.match(await told(shop), {
      ...{ 'payout.created': 1, 'payout.paid': 1, 'payout.failed': 1, 'payout.deleted': 1 },
      ...{ 'commission.paid': commissions, 'commission.updated': commissions },
    });
  },
);

t.test('lets a payout be changed again once the job has failed for good', async (t) => {
  const shop = await openShop(rail);
  const ada = await payee(shop, []);
  await earn(shop, ada, 2001);
  await batchOf(shop);
  const [payout] = (await shop.list('payouts')) as [Json];
  const path = `/v1/payouts/${payout.id}`;
  const key = `change:${payout.id}`;
  const jobs = () => rail.query(sql`select attempts, max_attempts from graphile_worker.jobs where key = ${key}`);
  const mails = () =>
    rail.query(sql`select subject from core.outgoing_mail where organization_id = ${shop.merchant.organization_id}`);
  let ticks = 0;
  const giveUp = () =>
    rail.tick('program/give_up_payout_changes', new Date(Date.UTC(2026, 0, 2, 0, ++ticks)).toISOString());

  await rail.query(sql`
    create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$`);
  await rail.query(sql`
    create trigger refused before update on program.commission for each row when (new.status = 'paid') execute function public.refuse()`);
  t.match(await shop.merchant.post(`${path}/mark_paid`), { status: 'pending', in_progress: 'mark_paid' });
  await eventually(async () => (await jobs())[0]?.attempts > 0, 'the job to fail');
  await rail.query(sql`update program.payout set updated_at = now() - interval '1 hour' where id = ${payout.id}`);
  await giveUp();
  t.match(await shop.merchant.get(path), { in_progress: 'mark_paid' }, 'while it is tried again');

  await eventually(async () => {
    await rail.query(sql`
      update graphile_worker._private_jobs set attempts = max_attempts where key = ${key} and locked_at is null`);
    const [job] = await jobs();
    return job?.attempts === job?.max_attempts;
  }, 'the job to have failed for good');
  await giveUp();
  await eventually(async () => (await shop.merchant.get(path)).in_progress === null, 'the change to be given up');
  t.match(await shop.merchant.get(path), { status: 'pending' });
  await eventually(async () => (await mails()).length > 0, 'the owner to be emailed');
  t.same(await mails(), [{ subject: `Payout ${payout.id} could not be marked as paid` }]);

  await rail.query(sql`drop trigger refused on program.commission`);
  t.match(await shop.merchant.post(`${path}/mark_paid`, { external_id: 'AGAIN' }), { in_progress: 'mark_paid' });
  t.match(await settled(shop, payout, 'paid'), { external_id: 'AGAIN' });
  t.same(await rail.audit(), []);
});

t.test('deletes a partner of many commissions by a job, which goes on where it failed', async (t) => {
  const shop = await openShop(rail);
  const ada = await payee(shop, []);
  await earn(shop, ada, 700);
  await batchOf(shop);
  await earn(shop, ada, 1_500, { status: 'pending', from: 701 });
  const key = `delete_partner:${ada.id}`;
  const jobs = () => rail.query(sql`select last_error from graphile_worker.jobs where key = ${key}`);
  await rail.query(sql`
    create function public.refuse_one() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$`);
  await rail.query(sql`
    create trigger refused before update on program.commission
    for each row when (new.status = 'voided' and new.id like '%000001500') execute function public.refuse_one()`);

  t.match(await shop.merchant.delete(`/v1/partners/${ada.id}`), { deleted: true });
  await eventually(async () => (await jobs())[0]?.last_error, 'the job to fail');
  const half = await statusesOf(shop);
  const counts = Object.fromEntries(half.map(({ status, count }) => [status, count]));
  t.ok(counts.pending >= 700 && counts.voided >= 700, JSON.stringify(counts));
  t.same(await shop.list('payouts'), [], 'the pending payout is deleted');
  await rail.tick('program/mature_commissions', new Date().toISOString());
  const batch = await batchOf(shop);
  t.match(batch.progress, { payouts: 0, not_eligible: [] });
  t.same(await statusesOf(shop), half, 'what is left matures no more, and is not paid');

  await rail.query(sql`drop trigger refused on program.commission`);
  await rail.query(
    sql`update graphile_worker._private_jobs set run_at = now() where key = ${key} and locked_at is null`,
  );
  await eventually(async () => (await jobs()).length === 0, 'the job to end', within_ms);
  t.same(await statusesOf(shop), [{ status: 'voided', count: 2_200, held: 0 }]);
  const events = await rail.query(sql`
    select type, body::jsonb #>> '{data,commission_id}' as id from webhooks.event where program_id = ${shop.program_id}
      and type in ('affiliate.deleted', 'payout.deleted', 'commission.voided', 'commission.updated') order by position`);
  t.same(
    events.slice(0, 2).map(({ type }) => type),
    ['affiliate.deleted', 'payout.deleted'],
  );
  const voided = events.slice(2).map(({ id }) => id);
  t.same(voided, [...new Set(voided)].sort(), 'each is told once, in the order of the ids');
  t.equal(voided.length, 2_200);
  t.same(await rail.audit(), []);
});
