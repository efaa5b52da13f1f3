import t, { type Test } from 'tap';
import { type Answer, type Caller, callerOf, eventually, sql, startRail } from '../harness.ts';
import { startGate, startProcess } from '../processes.ts';
import { openSlice } from './slice.ts';

/** Sales that one kill of the API interrupts, each at another statement and in an organization of its own: none waits for another. */
const sales_a_kill = 5;

const rail = await startRail({ worker: false, durability: 'durable' });
const gate = await startGate(rail.url);
const shops = await Promise.all(Array.from({ length: sales_a_kill }, openShop));
let api = await startProcess('api', gate.url);
let sales = 0;
const once = { sales: 1, commissions: 1, events: ['sale.created', 'commission.created'] };

interface Shop {
  merchant: Caller;
  program_id: string;
  partner_id: string;
}

async function openShop(): Promise<Shop> {
  const merchant = await rail.organization();
  const { program_id } = await openSlice(merchant);
  const { data: partners } = await merchant.get(`/v1/partners?program_id=${program_id}`);
  return { merchant, program_id, partner_id: partners[0].id };
}

t.test('records a sale once when the API is killed between any two statements and asked again', async (t) => {
  let statements = 0;
  void gate.stopAt('before', () => {
    statements++;
    return false;
  });
  const sale = newSale(shops[0] as Shop);
  t.equal((await record(sale)).status, 201);
  gate.disarm();
  t.ok(statements > 8, `recording a sale takes ${statements} statements`);
  t.same(await countOf(sale), once);

  const kills: Kill[] = [
    ...Array.from(
      { length: statements - 1 },
      (_, at): Kill => ({ side: at % 2 === 0 ? 'after' : 'before', nth: at + 1 }),
    ),
    { side: 'before', nth: statements },
    { side: 'after', nth: statements },
  ];
  for (let at = 0; at < kills.length; at += sales_a_kill) await crash(t, kills.slice(at, at + sales_a_kill));
});

interface Kill {
  side: 'before' | 'after';
  nth: number;
}

async function crash(t: Test, kills: Kill[]): Promise<void> {
  const interrupted: { sale: Sale; failed: Promise<string> }[] = [];
  for (const [at, { side, nth }] of kills.entries()) {
    let seen = 0;
    const held = gate.holdAt(side, () => ++seen === nth);
    const sale = newSale(shops[at] as Shop);
    const failed = record(sale).then(
      ({ status }) => `answered ${status}`,
      () => 'gave no answer',
    );
    interrupted.push({ sale, failed });
    await held;
  }
  await api.end('SIGKILL');
  gate.cut();
  for (const [at, { failed }] of interrupted.entries())
    t.equal(await failed, 'gave no answer', `killed ${kills[at]?.side} statement ${kills[at]?.nth}`);
  api = await startProcess('api', gate.url);

  for (const { sale } of interrupted) {
    const retried = await retry(sale);
    t.equal(retried.status, 201);
    t.same(await countOf(sale), once, 'one sale, one commission, their events');
    const again = await record(sale);
    t.equal(again.text, retried.text, 'and the same answer from then on');
    t.equal(again.headers['idempotent-replayed'], 'true');
  }
}

interface Sale {
  shop: Shop;
  external_charge_id: string;
}

function newSale(shop: Shop): Sale {
  sales++;
  return { shop, external_charge_id: `ch_${sales}` };
}

function record({ shop: { merchant, program_id, partner_id }, external_charge_id }: Sale): Promise<Answer> {
  const client = callerOf(api.url, merchant.key, merchant.organization_id);
  const sale = { program_id, partner_id, amount_minor: 5_000, currency: 'USD', external_charge_id };
  return client.request('POST', '/v1/sales', sale, { 'Idempotency-Key': external_charge_id });
}

/** As a client does: "the same key while the first request is still running" is answered by another try. */
async function retry(sale: Sale): Promise<Answer> {
  let answer: Answer | undefined;
  await eventually(async () => {
    answer = await record(sale);
    return answer.body.error?.code !== 'idempotency_key_in_flight';
  }, 'the end of the first request');
  return answer as Answer;
}

async function countOf({ shop: { program_id }, external_charge_id }: Sale): Promise<object | undefined> {
  const [counted] = await rail.query(sql`
    with sale as (select id from program.sale where program_id = ${program_id} and external_charge_id = ${external_charge_id})
    select
      (select count(*) from sale) as sales,
      (select count(*) from program.commission c where c.sale_id in (select id from sale)) as commissions,
      (select array_agg(e.type order by e.position) from webhooks.event e, sale s where e.body::jsonb -> 'data' ->> 'sale_id' = s.id) as events`);
  return counted;
}
