/** Kills processes that activate deals, or look for those who joined, before or after any statement. */
import t from 'tap';
import { openDatabase } from '../../src/core/postgres/database.ts';
import { type Store, transaction } from '../../src/core/postgres/transaction.ts';
import { activateDeal } from '../../src/recruitment/deals/activate.ts';
import { observeJoining } from '../../src/recruitment/deals/joining.ts';
import { eventually, type Json, patient_database, sql, startRail } from '../harness.ts';
import { startGate, startProcess } from '../processes.ts';
import { effort } from '../runner/effort.ts';

const rail = await startRail({ worker: false, durability: 'durable' });
const gate = await startGate(rail.url);
const gated = openDatabase(gate.url, { ...patient_database, size: 2, name: 'rail test' });
t.teardown(() => gated.end());
const v1 = '/recruitment/v1';
const caller = await rail.organization();
const { organization_id } = caller;
const { id: program_id } = await caller.post('/v1/programs', {
  ...{ name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' },
});
const { id: brand_id } = await caller.post(`${v1}/brands`, { name: 'Acme', website_url: 'https://acme.example.com' });

let nth_deal = 0;

/** A deal that waits for its job. */
async function waiting(given: Json = {}): Promise<{ id: string; prospect_id: string; email: string }> {
  const nth = ++nth_deal;
  const email = `ada@kill${nth}.com`;
  const prospect = await caller.post(`${v1}/prospects`, { brand_id, channel: 'website', key: `kill${nth}.com`, email });
  const terms = {
    ...{ rate_type: 'percent', rate_value: 2_000, currency: 'USD' },
    ...{ upfront_fee_minor: 100, coupon_code: `KILL${nth}`, ...given },
  };
  const { id } = await caller.post(`${v1}/deals`, { prospect_id: prospect.id, program_id, terms });
  await caller.post(`${v1}/deals/${id}/agree`);
  await caller.post(`${v1}/deals/${id}/activate`);
  return { id, prospect_id: prospect.id, email };
}

/** Runs the job in this process: a connection that is cut leaves in the database what a kill leaves. */
const run = (deal_id: string, store: Store): Promise<void> =>
  activateDeal({ organization_id, request_id: null, deal_id, version: 1 }, { store, services: rail.services });
const through_gate: Store = { ...rail.store, database: gated };

/** @returns whether it came to the kill */
async function killedAt(work: (store: Store) => Promise<unknown>, side: 'before' | 'after', nth: number) {
  let seen = 0;
  const stopped = gate.stopAt(side, (_, answer) => answer === undefined && ++seen === nth).then(() => 'stopped');
  const working = work(through_gate).then(
    () => 'done',
    () => 'failed',
  );
  const first = await Promise.race([stopped, working]);
  gate.disarm();
  gate.cut();
  await working;
  return first === 'stopped';
}

/** Everything that an activation leaves, by name. */
const leftOf = async ({
  id,
  prospect_id,
  email,
}: {
  id: string;
  prospect_id: string;
  email: string;
}): Promise<Json> => {
  const [left] = await rail.query(sql`
    with told as (
      select e.type, e.body::json -> 'data' as data from webhooks.event e where e.organization_id = ${organization_id}
    ), partner as (
      select p.id from program.partner p where p.program_id = ${program_id} and p.email = ${email}
    )
    select
      d.status, d.last_error, p.stage,
      d.partner_id is not distinct from p.partner_id as is_linked,
      (select count(*) from partner) as partners,
      (select count(*) from program.rule r where r.partner_ids && array(select x.id from partner x)) as rules,
      (select count(*) from program.commission c where c.partner_id in (select x.id from partner x)) as bonuses,
      (select count(*) from program.coupon c where c.partner_id in (select x.id from partner x)) as coupons,
      (select count(*) from told where type = 'affiliate.created' and data ->> 'email' = ${email}) as created,
      (select count(*) from told where type = 'affiliate.activated' and data ->> 'deal_id' = ${id}) as activated,
      (
        select count(*) from told
        where type = 'affiliate.stage_changed' and data ->> 'prospect_id' = ${prospect_id} and data ->> 'reason' = 'activated'
      ) as moved
    from recruitment.deal d
    join recruitment.prospect p on p.organization_id = d.organization_id and p.id = d.prospect_id
    where d.organization_id = ${organization_id} and d.id = ${id}`);
  return left as Json;
};

const counts = (count: number) => ({
  ...{ partners: count, rules: count, bonuses: count, coupons: count, created: count, activated: count, moved: count },
});
const whole = { status: 'active', last_error: null, stage: 'active', is_linked: true, ...counts(1) };
const nothing = { status: 'activating', last_error: null, stage: 'agreed', is_linked: true, ...counts(0) };

/** Returns some of the places: every so many, and the last two. */
const some = (count: number): number[] =>
  Array.from({ length: count }, (_, at) => at + 1).filter(
    (nth) => nth % effort.activation_stride === 0 || nth >= count - 1,
  );

async function statementsOf(work: (store: Store) => Promise<unknown>): Promise<number> {
  let statements = 0;
  void gate.stopAt('before', (_, answer) => {
    if (answer === undefined) statements++;
    return false;
  });
  await work(through_gate);
  gate.disarm();
  return statements;
}

t.test('an activation that is killed between any two statements leaves nothing or all, and is done once', async (t) => {
  const undisturbed = await waiting();
  const statements = await statementsOf((store) => run(undisturbed.id, store));
  t.ok(statements > 20, `an activation is ${statements} statements`);
  for (const nth of some(statements + 1)) {
    const deal = await waiting();
    // Before a statement is after the one before it; the last one is the commit.
    const is_over = nth > statements;
    const [side, at] = is_over ? (['after', statements] as const) : (['before', nth] as const);
    t.ok(await killedAt((store) => run(deal.id, store), side, at), `it came to statement ${at}`);
    t.strictSame(await leftOf(deal), is_over ? whole : nothing, `killed ${side} statement ${at}`);
    await run(deal.id, rail.store);
    await run(deal.id, rail.store);
    t.strictSame(await leftOf(deal), whole, `done again after it was killed ${side} statement ${at}`);
  }
});

t.test('a refusal that is killed between any two statements refuses', async (t) => {
  await caller.post('/v1/coupons', {
    ...{ program_id, code: 'OTHERS' },
    partner_id: (await caller.post('/v1/partners', { program_id, email: 'other@partner.com' })).id,
  });
  const given = { coupon_code: 'OTHERS' };
  const refused = { ...nothing, status: 'agreed', last_error: 'coupon_taken' };
  const undisturbed = await waiting(given);
  const statements = await statementsOf((store) => run(undisturbed.id, store));
  for (const nth of some(statements)) {
    const deal = await waiting(given);
    t.ok(
      await killedAt((store) => run(deal.id, store), nth % 2 === 0 ? 'before' : 'after', nth),
      `it came to statement ${nth}`,
    );
    await run(deal.id, rail.store);
    t.strictSame(await leftOf(deal), refused, `killed at statement ${nth}`);
  }
});

t.test('whoever looks for those who joined is killed between any two statements: each is told once', async (t) => {
  const acme = { name: 'Acme Joining', website_url: 'https://acme.example.com' };
  const joining = await caller.post('/v1/programs', { ...acme, currency: 'USD' });
  const brand = await caller.post(`${v1}/brands`, { ...acme, program_id: joining.id });
  const observe = (store: Store) =>
    transaction(store, { organization_id, request_id: null }, (tx) =>
      observeJoining(tx, rail.services.vault, joining.id, 500),
    );
  let nth_joiner = 0;
  const join = async (): Promise<string> => {
    const key = `joins${++nth_joiner}.com`;
    const given = { brand_id: brand.id, channel: 'website', key, email: `ada@${key}` };
    const { id } = await caller.post(`${v1}/prospects`, given);
    await caller.post(`${v1}/prospects/${id}/invite`, { via: 'mark' });
    await caller.post('/v1/partners', { program_id: joining.id, email: `ada@${key}` });
    return id;
  };
  const told = async (prospect_id: string): Promise<number> =>
    (
      await rail.query(sql`
        select 1 from webhooks.event e
        where e.organization_id = ${organization_id} and e.type = 'affiliate.signed_up' and strpos(e.body, ${prospect_id}) > 0`)
    ).length;
  await join();
  const statements = await statementsOf(observe);
  t.ok(statements > 8, `a look is ${statements} statements`);
  for (const nth of some(statements)) {
    const prospect_id = await join();
    t.ok(await killedAt(observe, nth % 2 === 0 ? 'before' : 'after', nth), `it came to statement ${nth}`);
    await Promise.all([observe(rail.store), observe(rail.store)]);
    t.equal(await told(prospect_id), 1, `killed at statement ${nth}`);
  }
});

t.test('a worker that is killed while it activates: another one does it', async (t) => {
  await rail.query(sql`select graphile_worker.complete_jobs(array(select id from graphile_worker.jobs))`);
  let worker = await startProcess('worker', gate.url);
  for (const [side, text] of [
    ['after', 'insert into program.rule'],
    ['before', 'insert into recruitment.activity'],
  ] as const) {
    const stopped = gate.stopAt(
      side,
      (statement, answer) => answer === undefined && statement.text.replaceAll(/\s+/g, ' ').includes(text),
    );
    const deal = await waiting();
    await stopped;
    await worker.end('SIGKILL');
    gate.cut();
    t.strictSame(await leftOf(deal), nothing, `killed ${side} '${text}'`);
    worker = await startProcess('worker', gate.url);
    await eventually(async () => (await leftOf(deal)).status === 'active', 'the activation');
    t.strictSame(await leftOf(deal), whole);
  }
  t.same(await rail.audit(), []);
});
