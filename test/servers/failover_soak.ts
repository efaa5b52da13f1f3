/**
 * `npm run soak -- failover`: the primary is killed amid sales and a replica is promoted, with synchronous replication and without. With the programs of
 * Debian's Postgres 15.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { migrate } from '../../src/core/postgres/migrate.ts';
import { callerOf, eventually, type Json, startRail } from '../harness.ts';
import { type Gate, startGate, startProcess } from '../processes.ts';
import { openShop } from '../shop.ts';
import { type Cluster, debian, newCluster, program, query, replicaOf, set } from './cluster.ts';

const before_ms = 5_000;
const after_ms = 10_000;
const settings = { max_wal_senders: '10', wal_level: 'replica', hot_standby: 'on' };

export function soakFailover(): void {
  t.setTimeout(1_800_000);
  for (const is_synchronous of [true, false]) {
    t.test(
      `a replica is promoted, ${is_synchronous ? 'synchronous' : 'asynchronous, without the last commits'}`,
      async (t) => {
        const primary = await newCluster(debian, settings);
        await migrate(primary.url);
        const replica = await replicaOf(primary);
        if (is_synchronous) await set(primary, "synchronous_standby_names = '*'");
        const gate = await startGate(primary.url);
        const found = await failOver({ primary, replica, gate, is_synchronous });
        t.comment(
          `${found.acknowledged} sales acknowledged, ${found.lost} lost, no success for ${found.longest_ms} ms after the promotion`,
        );
        if (is_synchronous) t.equal(found.lost, 0, 'nothing that was acknowledged is lost');
        else t.ok(found.lost > 0, 'it did lose something');
        await eventually(
          async () => (await heldIn(replica)) === !is_synchronous,
          is_synchronous ? 'to go on' : 'to be held',
          60_000,
        );
        t.ok(found.longest_ms < 30_000);
      },
    );
  }
}

const heldIn = async ({ url }: Cluster): Promise<boolean> =>
  (await query<{ is_held: boolean }>(url, 'select is_held from core.hold()'))[0]?.is_held === true;

interface Servers {
  primary: Cluster;
  replica: Cluster;
  gate: Gate;
  is_synchronous: boolean;
}

async function failOver({ primary, replica, gate, is_synchronous }: Servers) {
  // Makes what the load needs; the load goes to processes behind the gate.
  const rail = await startRail({ of_url: primary.url, worker: false, audit: false });
  const shop = await openShop(rail);
  await shop.rule();
  const customer = await shop.referred(await shop.partner());
  const [api] = await Promise.all([startProcess('api', gate.url), startProcess('worker', gate.url)]);
  const { request } = callerOf(api.url, shop.merchant.key, shop.merchant.organization_id);
  const acknowledged: string[] = [];
  let is_over = false;
  let last_success = performance.now();
  let promoted_at = Number.POSITIVE_INFINITY;
  let longest_ms = 0;
  const load = async (by: number) => {
    for (let nth = 0; !is_over; nth++) {
      const sale: Json = {
        program_id: shop.program_id,
        customer_id: customer.id,
        amount_minor: 1_000,
        currency: 'USD',
      };
      const external_charge_id = `ch_${by}_${nth}`;
      const { status } = await request('POST', '/v1/sales', { ...sale, external_charge_id }).catch(() => ({
        status: 0,
      }));
      if (status >= 300 || status === 0) {
        await sleep(50);
        continue;
      }
      acknowledged.push(external_charge_id);
      const now = performance.now();
      if (now > promoted_at) longest_ms = Math.max(longest_ms, now - Math.max(last_success, promoted_at));
      last_success = now;
    }
  };
  const loads = [0, 1, 2, 3].map(load);
  await sleep(before_ms + 10_000); // each process has looked at the server since it is synchronous
  if (!is_synchronous) {
    await set(replica, "primary_conninfo = ''");
    await sleep(2_000);
  }
  await primary.stop('SIGKILL');
  gate.cut();
  await program(join(debian, 'pg_ctl'), ['promote', '-D', replica.data]);
  promoted_at = performance.now();
  gate.leadTo(replica.port);
  gate.cut();
  await sleep(after_ms);
  is_over = true;
  await Promise.all(loads);
  const there = await query<{ external_charge_id: string }>(replica.url, 'select external_charge_id from program.sale');
  const known = new Set(there.map(({ external_charge_id }) => external_charge_id));
  return {
    acknowledged: acknowledged.length,
    lost: acknowledged.filter((id) => !known.has(id)).length,
    longest_ms: Math.round(longest_ms),
  };
}
