/** Checks the history of commissions, in entries that are only added. The audit at the end of every test file checks that they sum up. */
import sql from 'sql-template-tag';
import t from 'tap';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { type Json, startRail } from '../harness.ts';
import { openShop } from '../shop.ts';

const rail = await startRail();
const shop = await openShop(rail, { holding_period_days: 30 });
const { merchant } = shop;
await shop.rule();

const entriesOf = (sale: Json): Promise<Json[]> =>
  rail.query(sql`
    select e.kind, e.cause, e.amount_minor, e.commission_id, e.refund_id, e.payout_id, e.effective_at
    from program.commission_entry e where e.sale_id = ${sale.id} order by e.position`);

const attributedSale = async (fields: Json = {}) => {
  const partner = await shop.partner();
  const customer = await shop.referred(partner);
  return shop.sale({ customer_id: customer.id, amount_minor: 10_000, ...fields });
};

t.test('a sale earns, a refund adjusts, and the last one voids', async (t) => {
  const occurred_at = new Date(Date.now() - 86_400_000).toISOString();
  const sale = await attributedSale({ occurred_at });
  const commission_id = sale.commissions[0].id;
  await shop.refund(sale, { amount_minor: 4_000, external_refund_id: 're_1' });
  await shop.refund(sale);
  const refunds = await shop.list('refunds', `sale_id=${sale.id}`);
  t.match(await entriesOf(sale), [
    { kind: 'earned', cause: 'sale', amount_minor: 2_000, commission_id, effective_at: occurred_at },
    { kind: 'adjusted', cause: 'sale_refunded', amount_minor: -800, refund_id: refunds[1]?.id },
    { kind: 'voided', cause: 'sale_refunded', amount_minor: -1_200, refund_id: refunds[0]?.id },
  ]);
});

t.test('a refund of what is paid claws back', async (t) => {
  const sale = await attributedSale();
  await shop.pay(sale.commissions[0]);
  await shop.refund(sale, { amount_minor: 5_000 });
  const [clawback] = (await shop.commissionsOf(sale)).filter(({ kind }) => kind === 'clawback');
  await shop.pay(clawback as Json);
  t.match(await entriesOf(sale), [
    { kind: 'earned', amount_minor: 2_000 },
    { kind: 'paid', cause: 'payout_paid', amount_minor: -2_000, payout_id: /^pyt_/ },
    {
      kind: 'clawed_back',
      cause: 'sale_refunded',
      amount_minor: -1_000,
      refund_id: /^rfd_/,
      commission_id: clawback?.id,
    },
    { kind: 'paid', cause: 'payout_paid', amount_minor: 1_000 },
  ]);
});

t.test('a payout that returns makes the commission owed again', async (t) => {
  const sale = await attributedSale();
  const [commission] = sale.commissions;
  await shop.pay(commission);
  await rail.query(sql`
    with returned as (
      update program.commission set status = 'due', paid_at = null where id = ${commission.id} returning payout_id
    ),
    attempted as (
      update program.payout_attempt a set status = 'returned' from returned r where a.payout_id = r.payout_id
    )
    update program.payout p set status = 'failed', failed_at = now(), paid_at = null, error_code = 'returned'
    from returned r where p.id = r.payout_id`);
  t.match((await entriesOf(sale)).slice(1), [
    { kind: 'paid', cause: 'payout_paid', amount_minor: -2_000, payout_id: /^pyt_/ },
    { kind: 'paid', cause: 'payout_returned', amount_minor: 2_000, payout_id: /^pyt_/ },
  ]);
});

t.test('corrections, edits by hand and rejections say what they are', async (t) => {
  const sale = await attributedSale();
  const { id } = sale.commissions[0];
  await merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 20_000 });
  await merchant.patch(`/v1/commissions/${id}`, { amount_minor: 3_000 });
  await merchant.post(`/v1/commissions/${id}/reject`);
  t.match(await entriesOf(sale), [
    { kind: 'earned', amount_minor: 2_000 },
    { kind: 'adjusted', cause: 'sale_corrected', amount_minor: 2_000 },
    { kind: 'adjusted', cause: 'edited_by_hand', amount_minor: -1_000 },
    { kind: 'voided', cause: 'rejected', amount_minor: -3_000 },
  ]);
});

t.test('what is voided by hand or goes with its sale or partner says why', async (t) => {
  const by_hand = await attributedSale();
  await merchant.post(`/v1/commissions/${by_hand.commissions[0].id}/void`, { reason: 'agreed' });
  t.match((await entriesOf(by_hand)).at(-1), { kind: 'voided', cause: 'agreed', amount_minor: -2_000 });

  const deleted = await attributedSale();
  await merchant.delete(`/v1/sales/${deleted.id}`);
  t.match((await entriesOf(deleted)).at(-1), { kind: 'voided', cause: 'sale_deleted', amount_minor: -2_000 });

  const of_deleted = await attributedSale();
  await merchant.delete(`/v1/partners/${of_deleted.partner_id}`);
  t.match((await entriesOf(of_deleted)).at(-1), { kind: 'voided', cause: 'partner_deleted', amount_minor: -2_000 });

  const moved = await attributedSale();
  const partner = await shop.partner();
  await merchant.patch(`/v1/sales/${moved.id}`, { partner_id: partner.id });
  t.match((await entriesOf(moved)).slice(-2), [
    { kind: 'voided', cause: 'sale_corrected', amount_minor: -2_000 },
    { kind: 'earned', cause: 'sale', amount_minor: 2_000 },
  ]);
});

t.test('what is edited by hand after its sale was deleted says so', async (t) => {
  const sale = await attributedSale();
  await shop.pay(sale.commissions[0]);
  await merchant.delete(`/v1/sales/${sale.id}`);
  const [clawback] = (await shop.commissionsOf(sale)).filter(({ kind }) => kind === 'clawback');
  await merchant.patch(`/v1/commissions/${clawback?.id}`, { amount_minor: -500 });
  await merchant.delete(`/v1/commissions/${clawback?.id}`);
  t.match((await entriesOf(sale)).slice(2), [
    { kind: 'clawed_back', cause: 'sale_deleted', amount_minor: -2_000 },
    { kind: 'adjusted', cause: 'edited_by_hand', amount_minor: 1_500 },
    { kind: 'voided', cause: 'deleted', amount_minor: 500 },
  ]);
});

t.test('a bonus is earned', async (t) => {
  const partner = await shop.partner();
  const { program_id } = shop;
  const bonus = await merchant.post('/v1/commissions', { program_id, partner_id: partner.id, amount_minor: 700 });
  t.match(
    await rail.query(
      sql`select kind, cause, amount_minor, sale_id from program.commission_entry where commission_id = ${bonus.id}`,
    ),
    [{ kind: 'earned', cause: 'bonus', amount_minor: 700, sale_id: null }],
  );
});

t.test('no amount changes unless it is stated why, by the statement that changes it', async (t) => {
  const sale = await attributedSale();
  const { id } = sale.commissions[0];
  const unstated = /Why the commission com_\w+ changes is not stated, or unknown/;
  const add = sql`update program.commission set amount_minor = amount_minor + 1 where id = ${id}`;
  await t.rejects(rail.query(add), unstated);
  await t.rejects(rail.query(sql`${add} and program.because('whatever')`), unstated);
  const ofShop = { organization_id: merchant.organization_id, request_id: null };
  const twice = transaction(rail.store, ofShop, async (tx) => {
    await tx.all(sql`${add} and program.because('sale_corrected')`);
    await tx.all(add);
  });
  await t.rejects(twice, unstated);
  t.equal((await entriesOf(sale)).length, 1);
  const causes = 'sale_refunded,sale_corrected,sale_deleted,edited_by_hand,partner_deleted,payout_returned'.split(',');
  for (const cause of causes) await rail.query(sql`${add} and program.because(${cause})`);
  const adjusted = causes.map((cause) => ({ kind: 'adjusted', cause, amount_minor: 1 }));
  t.match((await entriesOf(sale)).slice(1), adjusted);
  await rail.query(
    sql`update program.commission set amount_minor = 2000 where id = ${id} and program.because('edited_by_hand')`,
  );
});

t.test('entries are only added', async (t) => {
  await t.rejects(
    rail.query(sql`update program.commission_entry set amount_minor = 1`),
    /only added: UPDATE is refused/,
  );
  await t.rejects(rail.query(sql`delete from program.commission_entry`), /only added: DELETE is refused/);
});

t.test('the audit notices an entry that is missing or wrong', async (t) => {
  const sale = await attributedSale();
  const { id } = sale.commissions[0];
  await rail.query(sql`alter table program.commission_entry disable trigger entries_only_added`);
  await rail.query(
    sql`update program.commission_entry set amount_minor = amount_minor + 1 where commission_id = ${id}`,
  );
  t.match(await rail.audit(), [
    { invariant: 'the entries of a commission sum to what it counts and what was paid', subject_id: id },
  ]);
  await rail.query(
    sql`update program.commission_entry set amount_minor = amount_minor - 1 where commission_id = ${id}`,
  );
  await rail.query(sql`alter table program.commission_entry enable trigger entries_only_added`);
  t.same(await rail.audit(), []);
});
