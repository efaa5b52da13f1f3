import t, { type Test } from 'tap';
import { type Answer, callerOf, eventually, sql, startRail } from '../harness.ts';
import { startGate, startProcess } from '../processes.ts';
import { openSlice } from './slice.ts';

const rail = await startRail({ worker: false, durability: 'durable' });
const gate = await startGate(rail.url);
const merchant = await rail.organization();
const { program_id } = await openSlice(merchant);
const { data: partners } = await merchant.get(`/v1/partners?program_id=${program_id}`);
let api = await startProcess('api', gate.url);
let sales = 0;
const once = { sales: 1, commissions: 1, events: ['sale.created', 'commission.created'] };

t.test('records a sale once when the API is killed between any two statements and asked again', async (t) => {
  let statements = 0;
  void gate.stopAt('before', () => {
    statements++;
    return false;
  });
  const sale = newSale();
  t.equal((await record(sale)).status, 201);
  gate.disarm();
  t.ok(statements > 8, `recording a sale takes ${statements} statements`);
  t.same(await countOf(sale), once);

  for (let nth = 1; nth < statements; nth++) {
    await crash(t, nth % 2 === 0 ? 'before' : 'after', nth);
  }
  await crash(t, 'before', statements);
  await crash(t, 'after', statements);
});

async function crash(t: Test, side: 'before' | 'after', nth: number): Promise<void> {
  const sale = newSale();
  let seen = 0;
  const stopped = gate.stopAt(side, (_, answer) => answer === undefined && ++seen === nth);
  const failed = record(sale).then(
    ({ status }) => `answered ${status}`,
    () => 'gave no answer',
  );
  await stopped;
  await api.end('SIGKILL');
  gate.cut();
  t.equal(await failed, 'gave no answer', `killed ${side} statement ${nth}`);
  api = await startProcess('api', gate.url);

  const retried = await retry(sale);
  t.equal(retried.status, 201);
  t.same(await countOf(sale), once, 'one sale, one commission, their events');
  const again = await record(sale);
  t.equal(again.text, retried.text, 'and the same answer from then on');
  t.equal(again.headers['idempotent-replayed'], 'true');
}

type Sale = Record<string, unknown> & { external_charge_id: string };

function newSale(): Sale {
  sales++;
  const amount = { amount_minor: 5_000, currency: 'USD' };
  return { program_id, partner_id: partners[0].id, ...amount, external_charge_id: `ch_${sales}` };
}

function record(sale: Sale): Promise<Answer> {
  const client = callerOf(api.url, merchant.key, merchant.organization_id);
  return client.request('POST', '/v1/sales', sale, { 'Idempotency-Key': sale.external_charge_id });
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

async function countOf({ external_charge_id }: Sale): Promise<object | undefined> {
  const [counted] = await rail.query(sql`
    with sale as (select id from program.sale where program_id = ${program_id} and external_charge_id = ${external_charge_id})
    select
      (select count(*) from sale) as sales,
      (select count(*) from program.commission c where c.sale_id in (select id from sale)) as commissions,
      (select array_agg(e.type order by e.position) from webhooks.event e, sale s where e.body::jsonb -> 'data' ->> 'sale_id' = s.id) as events`);
  return counted;
}
