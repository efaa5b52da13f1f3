import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';
import { batchOf, payee, payoutAfter, setRail } from './fixture.ts';

const rail = await startRail();
/** 10,000 are paid by a worker in some seconds. What a payout may well have: RAIL_COMMISSIONS=100000. */
const commissions = Number(process.env.RAIL_COMMISSIONS ?? 10_000);

/** Gives a partner bonuses that are due, in one statement. */
const earn = ({ merchant, program_id }: Shop, { id }: Json, count: number) =>
  rail.query(sql`
    insert into program.commission (
      organization_id, id, program_id, partner_id, kind, amount_minor, currency, status, mature_at, created_at, updated_at
    )
    select ${merchant.organization_id}, 'com_' || core.id_time_part(now()) || 'e00g' || lpad(n::text, 12, '0'), ${program_id}, ${id}, 'bonus', 10,
      'USD', 'due', now(), now(), now()
    from generate_series(1, ${count}) as n`);

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

t.test(`sends, pays, returns and deletes a payout of ${commissions} commissions`, { timeout: 900_000 }, async (t) => {
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
  await payoutAfter(shop, payout, 'paid');
  t.same(await statusesOf(shop), [{ status: 'paid', count: commissions, held: commissions }]);

  const back = await shop.merchant.post(`/v1/payouts/${payout.id}/mark_returned`, { reason: 'Account closed' });
  t.match(back, { status: 'paid', in_progress: 'mark_returned' });
  t.match(await shop.merchant.request('POST', `/v1/payouts/${payout.id}/mark_returned`), {
    status: 409,
    body: { error: { code: 'payout_locked' } },
  });
  const returned = await payoutAfter(shop, payout, 'failed');
  t.match(returned, { error_code: 'returned', error_message: 'Account closed', in_progress: null });
  t.same(await statusesOf(shop), [{ status: 'due', count: commissions, held: commissions }]);

  await shop.merchant.delete(`/v1/payouts/${payout.id}`);
  await eventually(
    async () => (await shop.merchant.request('GET', `/v1/payouts/${payout.id}`)).status === 404,
    'the payout to be deleted',
  );
  t.same(await statusesOf(shop), [{ status: 'due', count: commissions, held: 0 }]);
  t.match(await told(shop), {
    ...{ 'payout.created': 1, 'payout.paid': 1, 'payout.failed': 1, 'payout.deleted': 1 },
    ...{ 'commission.paid': commissions, 'commission.updated': commissions },
  });
});
