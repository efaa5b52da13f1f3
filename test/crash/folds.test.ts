/** Sums stay exact in every view of the database while others write and fold, whoever of them is killed. */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t from 'tap';
import { type Json, persistent, sql, startRail } from '../harness.ts';
import { effort } from '../runner/effort.ts';
import { openShop } from '../shop.ts';

const rail = await startRail({ worker: false, durability: 'durable' });
const folds = [
  'program.fold_tallies(1000000)',
  'program.fold_reports(1000000)',
  'recruitment.fold_prospect_tallies(1000000)',
];
const recounts = ['program.audit_tallies', 'program.audit_reports', 'recruitment.prospect_tally_audit'];

const pick = <Each>(of: Each[]): Each => of[Math.floor(Math.random() * of.length)] as Each;

/** A connection that is opened anew when it is killed. */
async function onConnection(work: (client: pg.Client) => Promise<void>): Promise<'done' | 'killed'> {
  const client = new pg.Client({ connectionString: rail.url, application_name: 'mortal' });
  client.on('error', () => {});
  try {
    await client.connect();
    await work(client);
    return 'done';
  } catch (error) {
    if ((error as { code?: string }).code === '57P01' || /terminat|not queryable/i.test((error as Error).message))
      return 'killed';
    throw error;
  } finally {
    void client.end().catch(() => {});
  }
}

t.test('writers, folds and readers at once, killed at random', async (t) => {
  const merchant = persistent(await rail.organization());
  const shop = await openShop(rail, {}, merchant);
  await shop.rule();
  const partners = [await shop.partner(), await shop.partner()];
  const brand = await merchant.post('/recruitment/v1/brands', {
    name: 'Acme',
    website_url: 'https://acme.example.com',
  });
  let writers = 3;
  const state = { folded: 0, folds_killed: 0, looked: 0, kills: 0 };

  const write = async () => {
    const sales: Json[] = [];
    for (let nth = 0; nth < effort.writes_amid_kills; nth++) {
      sales.push(await shop.sale({ partner_id: pick(partners).id }));
      const sale = pick(sales);
      const done = await pick([
        () =>
          merchant.request('PATCH', `/v1/sales/${sale.id}`, { amount_minor: 1 + Math.floor(Math.random() * 20_000) }),
        () => merchant.request('POST', `/v1/sales/${sale.id}/refunds`, { amount_minor: 1 }),
        () => merchant.request('DELETE', `/v1/sales/${sale.id}`),
        () => merchant.request('PATCH', `/v1/customers/${sale.customer_id}`, { partner_id: pick(partners).id }),
        () =>
          merchant.request('POST', '/recruitment/v1/prospects', {
            ...{ brand_id: brand.id, channel: 'website', key: `${sale.id.replace('_', '-')}.example` },
          }),
      ])();
      if (done.status >= 500) throw new Error(done.text);
    }
    writers--;
  };
  const fold = async () => {
    while (writers > 0) {
      const outcome = await onConnection(async (client) => {
        while (writers > 0) {
          await client.query(`select ${pick(folds)}`);
          state.folded++;
        }
      });
      if (outcome === 'killed') state.folds_killed++;
    }
  };
  // Once more after the last kill, where each look was killed.
  const reads = () => writers > 0 || state.looked === 0;
  const read = async () => {
    while (reads()) {
      await onConnection(async (client) => {
        while (reads()) {
          await client.query('begin isolation level repeatable read');
          await client.query('select count(*) from program.sale');
          await sleep(Math.random() * 200);
          for (const recount of recounts) t.same((await client.query(`select * from ${recount}()`)).rows, [], recount);
          await client.query('commit');
          state.looked++;
        }
      });
    }
  };
  const kill = async () => {
    while (writers > 0) {
      await sleep(20 + Math.random() * 80);
      const [{ killed } = { killed: 0 }] = await rail.query<{ killed: number }>(sql`
        select count(pg_terminate_backend(a.pid)) as killed
        from (
          select a.pid
          from pg_stat_activity a
          where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type = 'client backend' and a.state = 'active'
          order by random() limit 1
        ) a`);
      state.kills += killed;
    }
  };
  await Promise.all([write(), write(), write(), fold(), fold(), read(), kill()]);
  t.ok(state.folded > 0 && state.looked > 0 && state.kills > 0 && state.folds_killed > 0, JSON.stringify(state));
  t.same(await rail.audit(), []);
  for (const one of folds) await rail.query(sql([`select ${one}`]));
  t.same(await rail.audit(), []);
});
