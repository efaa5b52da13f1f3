import pg from 'pg';
import { raw } from 'sql-template-tag';
import t from 'tap';
import { eventually, type Json, sql, startRail } from '../harness.ts';
import type { Statement } from '../processes.ts';
import { payee } from '../program/payouts/fixture.ts';
import { effort } from '../runner/effort.ts';
import { openShop } from '../shop.ts';
import { killsOf, spread } from './payout_kills.ts';
import { countRound, killedRound, openPayoutLine, replace } from './payout_round.ts';
import { isWork } from './slice.ts';

/** More than the first steps look at. */
const partners = 600;
/** At which statement of its work each worker dies, after one that dies amid both ranges: a step takes some fifteen. */
const all_deaths = [
  ['before', 4],
  ['after', 9],
  ['after', 14],
  ['before', 19],
] as const;
const deaths = all_deaths.slice(0, effort.payout_batch_kills);

/** On a busy machine a few rounds are enough: a soak makes hundreds. */
const until = Date.now() + 300_000;
const rail = await startRail({ worker: false, durability: 'durable' });
const line = await openPayoutLine(rail);

t.test('pays each payout once when the worker is killed between any two statements and calls', async (t) => {
  const counts = await countRound(line, 'rail');
  t.ok(
    counts.statements > 20 && counts.calls >= 3,
    `a round is ${counts.statements} statements and ${counts.calls} calls`,
  );
  const rounds = effort.payout_kills;
  let killed = 0;
  for (const { kill, trouble } of spread(killsOf(counts, rounds))) {
    if (killed > rounds / 2 && Date.now() > until) break;
    const outcome = await killedRound(line, 'rail', kill, trouble);
    if (outcome.killed) killed++;
    t.same(outcome.faults, [], outcome.text);
  }
  t.ok(killed > rounds / 2, `${killed} of ${rounds} rounds killed it`);
  t.ok(
    (await line.provider.moved()).every(({ times }) => times === 1),
    'by the count of the rail',
  );
});

t.test('creates the payouts of a batch, and freezes its file, once when the worker is killed', async (t) => {
  const { statements } = await countRound(line, 'file');
  const rounds = effort.payout_file_kills;
  let killed = 0;
  for (const { kill } of spread(killsOf({ statements, calls: 0 }, rounds))) {
    if (killed > rounds / 2 && Date.now() > until) break;
    const outcome = await killedRound(line, 'file', kill);
    if (outcome.killed) killed++;
    t.same(outcome.faults, [], outcome.text);
  }
  t.ok(killed > rounds / 2, `${killed} of ${rounds} rounds killed it`);
});

t.test('a batch goes on where it was when its worker is killed', async (t) => {
  const shop = await openShop(rail, { min_payout_minor: 1 }, line.merchant);
  const { program_id } = shop;
  // The data for banks is encrypted for each partner: copies could not be read.
  const payout_method = { method: 'paypal', details: { email: 'ada@partner.example.com' } };
  const ada = await payee(shop, [100, 20], { payout_method });
  const id_of = "'part_' || lpad(n::text, 26, '0')";
  await copy('partner', ada.id, `'id', ${id_of}, 'email', n || '@example.com', 'handle', 'ada-' || n`);
  await copy('payout_method', ada.id, `'partner_id', ${id_of}`);
  await copy('commission', ada.id, `'id', 'com_' || right(t.id, 20) || n, 'partner_id', ${id_of}`);
  let died = 0;
  let replaced: Promise<unknown> = Promise.resolve();
  /** Each worker that is killed has the next one killed later. */
  const arm = ([side, nth]: (typeof all_deaths)[number]): void => {
    let seen = 0;
    const picks = ({ text }: Statement, answer: unknown): boolean =>
      answer === undefined && isWork({ text }) && (seen > 0 || text.includes('payout_batch')) && ++seen === nth;
    void line.gate.stopAt(side, picks).then(() => {
      const next = deaths[++died];
      replaced = replace(line, () => next && arm(next));
    });
  };
  const locks = await lockPartners([10, 310]);
  const { id } = await line.merchant.post('/v1/payout_batches', { program_id });
  await eventually(async () => (await rail.waiting()) > 1, 'both ranges to wait for a partner', 240_000);
  replaced = replace(line, () => {
    arm(all_deaths[0]);
    void locks.end();
  });
  let batch: Json = {};
  const done = async () => {
    batch = await line.merchant.get(`/v1/payout_batches/${id}`);
    return batch.progress.state === 'done';
  };
  // On a busy machine each of the workers takes a minute to start.
  await eventually(done, 'the batch to be created', 480_000);
  line.gate.disarm();
  await replaced;
  t.ok(died > deaths.length / 2, `${died} more workers died`);
  t.match(batch.progress, {
    ...{ partners_looked_at: partners, payouts: partners, not_eligible: [] },
    amounts: [{ currency: 'USD', payouts: partners, amount_minor: 120 * partners }],
  });
  const [counted] = await rail.query(sql`
    select count(*) as payouts, count(distinct partner_id) as partners, sum(amount_minor)::bigint as amount_minor,
      (select count(*) from program.commission where program_id = ${program_id} and payout_id is not null) as commissions,
      (select count(*) from webhooks.event where program_id = ${program_id} and type = 'payout.created') as events,
      (select count(distinct body::jsonb #>> '{data,payout_id}') from webhooks.event where program_id = ${program_id} and type = 'payout.created') as told
    from program.payout where program_id = ${program_id}`);
  t.same(counted, {
    ...{ payouts: partners, partners, amount_minor: 120 * partners, commissions: 2 * partners },
    ...{ events: partners, told: partners },
  });
});

/** Keeps others from reading partners to be paid until the connection ends: one of either half. */
async function lockPartners(partner_numbers: number[]): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: rail.url });
  await client.connect();
  await client.query('begin');
  const ids = partner_numbers.map((n) => `part_${String(n).padStart(26, '0')}`);
  await client.query('select from program.partner where id = any($1) for update', [ids]);
  return client;
}

/** Copies a partner's rows for as many partners as there are to be. */
async function copy(table: string, partner_id: string, changes: string): Promise<void> {
  const [{ columns }] = (await rail.query<{ columns: string }>(sql`
    select string_agg(quote_ident(column_name), ', ') as columns from information_schema.columns
    where table_schema = 'program' and table_name = ${table} and is_generated = 'NEVER' and column_name <> 'changed_in'`)) as [
    { columns: string },
  ];
  const key = table === 'partner' ? 'id' : 'partner_id';
  await rail.query(sql`
    insert into ${raw(`program.${table} (${columns})`)}
    select ${raw(columns)}
    from (
      select (jsonb_populate_record(t, jsonb_build_object(${raw(changes)}))).*
      from ${raw(`program.${table}`)} t, generate_series(2, ${partners}::integer) as n
      where t.${raw(key)} = ${partner_id}
    ) as copied`);
}
