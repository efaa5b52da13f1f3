import t, { type Test } from 'tap';
import { type Answer, type Caller, callerOf, eventually, sql, startRail } from '../harness.ts';
import { startGate, startProcess } from '../processes.ts';
import { openSlice } from './slice.ts';

/** Requests that one kill of the API interrupts, each at another statement and in an organization of its own: none waits for another. */
const requests_a_kill = 5;

const rail = await startRail({ worker: false, durability: 'durable' });
const gate = await startGate(rail.url);
const shops = await Promise.all(Array.from({ length: requests_a_kill }, openShop));
let api = await startProcess('api', gate.url);
let made = 0;

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

t.test('records a sale once when the API is killed between any two statements and asked again', (t) =>
  crashAtEachStatement(t, newSale),
);

t.test('an action is in the audit log exactly when it took effect, wherever the API is killed', (t) =>
  crashAtEachStatement(t, newTag),
);

/** Something that a client asks for, with an idempotency key. */
interface Request {
  send(): Promise<Answer>;
  /** Returns what it has left in the database. */
  count(): Promise<object | undefined>;
  none: object;
  once: object;
}

async function crashAtEachStatement(t: Test, make: (shop: Shop) => Request): Promise<void> {
  // The process keeps the keys that it has read.
  for (const shop of shops) await make(shop).send();
  // Now and then it sends one that is not of a request.
  const counts: number[] = [];
  for (const shop of shops) {
    let sent = 0;
    void gate.stopAt('before', () => {
      sent++;
      return false;
    });
    const request = make(shop);
    t.equal((await request.send()).status, 201);
    gate.disarm();
    t.same(await request.count(), request.once);
    counts.push(sent);
  }
  const statements = Math.min(...counts);
  t.ok(statements > 4, `it takes ${statements} statements`);

  const kills: Kill[] = [
    ...Array.from(
      { length: statements - 1 },
      (_, at): Kill => ({ side: at % 2 === 0 ? 'after' : 'before', nth: at + 1 }),
    ),
    { side: 'before', nth: statements },
    { side: 'after', nth: statements },
  ];
  for (let at = 0; at < kills.length; at += requests_a_kill)
    await crash(t, make, { kills: kills.slice(at, at + requests_a_kill), statements });
}

interface Kill {
  side: 'before' | 'after';
  nth: number;
}

async function crash(
  t: Test,
  make: (shop: Shop) => Request,
  { kills, statements }: { kills: Kill[]; statements: number },
): Promise<void> {
  const interrupted: { request: Request; failed: Promise<string> }[] = [];
  for (const [at, { side, nth }] of kills.entries()) {
    let seen = 0;
    const held = gate.holdAt(side, () => ++seen === nth);
    const request = make(shops[at] as Shop);
    const failed = request.send().then(
      ({ status }) => `answered ${status}`,
      () => 'gave no answer',
    );
    interrupted.push({ request, failed });
    await held;
  }
  await api.end('SIGKILL');
  gate.cut();
  const answers = await Promise.all(interrupted.map(({ failed }) => failed));
  // The last statement may be one that is not of the request, which was over before then.
  const is_over = (at: number) => kills[at]?.nth === statements && answers[at] === 'answered 201';
  for (const [at, answer] of answers.entries())
    if (!is_over(at)) t.equal(answer, 'gave no answer', `killed ${kills[at]?.side} statement ${kills[at]?.nth}`);
  api = await startProcess('api', gate.url);

  for (const [at, { request }] of interrupted.entries()) {
    const left = await request.count();
    const states = [...(is_over(at) ? [] : [request.none]), request.once].map((state) => JSON.stringify(state));
    t.ok(states.includes(JSON.stringify(left)), `all or nothing: ${JSON.stringify(left)}`);
    const retried = await retry(request);
    t.equal(retried.status, 201);
    t.same(await request.count(), request.once, 'all of it once');
    const again = await request.send();
    t.equal(again.text, retried.text, 'and the same answer from then on');
    t.equal(again.headers['idempotent-replayed'], 'true');
  }
}

function newSale({ merchant, program_id, partner_id }: Shop): Request {
  const external_charge_id = `ch_${++made}`;
  const sale = { program_id, partner_id, amount_minor: 5_000, currency: 'USD', external_charge_id };
  return {
    send: () => ask(merchant, '/v1/sales', sale, external_charge_id),
    count: () =>
      one(sql`
        with sale as (select id from program.sale where program_id = ${program_id} and external_charge_id = ${external_charge_id})
        select
          (select count(*) from sale) as sales,
          (select count(*) from program.commission c where c.sale_id in (select id from sale)) as commissions,
          (select array_agg(e.type order by e.position) from webhooks.event e, sale s where e.body::jsonb -> 'data' ->> 'sale_id' = s.id) as events`),
    none: { sales: 0, commissions: 0, events: null },
    once: { sales: 1, commissions: 1, events: ['sale.created', 'commission.created'] },
  };
}

/** A request with an entry in the log, which a sale, that systems send all day, has not. */
function newTag({ merchant, program_id }: Shop): Request {
  const name = `Tag ${++made}`;
  return {
    send: () => ask(merchant, '/v1/tags', { program_id, name }, name),
    count: () =>
      one(sql`
        select count(t.id) as tags, count(a.id) as entries
        from core.audit_entry a
        full join program.tag t on t.organization_id = a.organization_id and t.id = a.object_id
        where t.name = ${name} or a.object_id not in (select x.id from program.tag x) and a.operation = 'tags.create'`),
    none: { tags: 0, entries: 0 },
    once: { tags: 1, entries: 1 },
  };
}

/** Through the API as it runs now. */
function ask(merchant: Caller, path: string, body: object, key: string): Promise<Answer> {
  return callerOf(api.url, merchant.key, merchant.organization_id).request('POST', path, body, {
    'Idempotency-Key': key,
  });
}

async function one(counted: ReturnType<typeof sql>): Promise<object | undefined> {
  return (await rail.query(counted))[0];
}

/** As a client does: "the same key while the first request is still running" is answered by another try. */
async function retry(request: Request): Promise<Answer> {
  let answer: Answer | undefined;
  await eventually(async () => {
    answer = await request.send();
    return answer.body.error?.code !== 'idempotency_key_in_flight';
  }, 'the end of the first request');
  return answer as Answer;
}
