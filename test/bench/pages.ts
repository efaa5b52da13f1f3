import sql from 'sql-template-tag';
import { request } from 'undici';
import { openSession, type Person } from '../../src/core/access/session.ts';
import { run } from '../../src/core/postgres/database.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { writeEvents } from '../../src/products.ts';
import { type Bench, percentile, type Sample } from './harness.ts';
import { type Asked, closedLoop } from './load.ts';
import { openBigProgram } from './merchant.ts';
import { cpuOf, postmasterOf } from './processes.ts';
import { fill } from './rows.ts';

const default_rows = 100_000;
const connections = 2;
const most_ms = 100;
const most_page_bytes = 60_000;

/** Pages of the dashboard and the portal, beside the list of the API that one of them shows. */
export const pages: Bench = {
  name: 'pages',
  doc: `Pages of the dashboard and the portal over ${default_rows.toLocaleString('en')} partners and as many rows of every other kind (--size), beside the list of partners by REST.`,
  defaults: { rounds: 5, seconds: 3 },
  async setup(stack, progress, size = default_rows) {
    const { url, server, database, client, merchant, organization_id, program_id } = await openBigProgram(stack);
    await fill(client, { organization_id, program_id }, size, (line) => progress(`pages: ${line}`));
    // As workers have done, whose counts and sums the pages read.
    await client.query('select program.fold_tallies(2147483647)');
    await client.query('select program.fold_reports(2147483647)');
    await client.query('vacuum (analyze)');

    const [owner] = await run<{ id: string }>(
      database,
      sql`select id from core.user_account where organization_id = ${organization_id}`,
    );
    // A tenth of all rows belongs to the newest partner, who may sign in only if active.
    const [partner] = await run<{ id: string }>(
      database,
      sql`
        update program.partner p set status = 'active'
        where p.organization_id = ${organization_id}
          and p.id = (
            select max(n.id) from program.partner n where n.organization_id = ${organization_id} and n.program_id = ${program_id}
          )
        returning p.id`,
    );
    if (!owner || !partner) throw new Error('There is nobody to sign in.');
    const cookie = async (name: string, person: Person) => {
      const opening = { organization_id: null, request_id: null };
      const token = await transaction({ database, writeEvents }, opening, (tx) =>
        openSession(tx, organization_id, person, 'bench'),
      );
      return { cookie: `${name}=${token}`, accept: 'text/html' };
    };
    const team = await cookie('__Host-rail', { user_id: owner.id });
    const star = await cookie('__Host-rail-portal', { partner_id: partner.id });
    const pids = { server_cpu: server.pid, postgres_cpu: await postmasterOf(url) };
    const side = (name: string, path: string, headers: Record<string, string>, baseline?: string) => ({
      name,
      doc: `GET ${path.replaceAll(/_[0-9a-z]{26}/g, '_…')}`,
      ...(baseline ? { baseline } : {}),
      run: (seconds: number) => load(pids, server.url, { method: 'GET', path, headers }, seconds),
    });
    return {
      postgres_url: url,
      figures: {
        p50: { unit: 'ms', better: 'lower', doc: `from the request to the end of the page, ${connections} at a time` },
        p95: { unit: 'ms', better: 'lower', doc: 'the same, the 95th percentile', at_most: most_ms },
        bytes: { unit: 'B', better: 'lower', doc: 'of the page, uncompressed', at_most: most_page_bytes },
        server_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a page, of the process that answers it' },
        postgres_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a page, of Postgres' },
      },
      notes: ['A tenth of all rows belongs to the partner whose page and portal are asked for.'],
      sides: [
        side('rest', `/v1/partners?program_id=${program_id}`, merchant.headers),
        side('list', `/dashboard/partners?program_id=${program_id}`, team, 'rest'),
        side('home', `/dashboard?program_id=${program_id}`, team, 'rest'),
        side('partner', `/dashboard/partners/${partner.id}?program_id=${program_id}`, team, 'rest'),
        side('sales', `/dashboard/sales?program_id=${program_id}`, team, 'rest'),
        side('maturing', `/dashboard/maturing?program_id=${program_id}`, team, 'rest'),
        side('risk', `/dashboard/risk?program_id=${program_id}`, team, 'rest'),
        side('webhooks', `/dashboard/webhooks?program_id=${program_id}`, team, 'rest'),
        side('payout_run', `/dashboard/payout_run?program_id=${program_id}`, team, 'rest'),
        side('reports', `/dashboard/reports?program_id=${program_id}`, team, 'rest'),
        side('portal', '/portal', star, 'rest'),
        side('earnings', '/portal/commissions', star, 'rest'),
      ],
    };
  },
};

async function load(
  pids: Record<string, number | undefined>,
  url: string,
  asked: Asked,
  seconds: number,
): Promise<Sample> {
  const { statusCode, body } = await request(url + asked.path, { headers: asked.headers ?? {} });
  const bytes = (await body.arrayBuffer()).byteLength;
  if (statusCode !== 200) throw new Error(`${asked.path} answered ${statusCode}.`);
  const before = await cpuOf(pids);
  const done = await closedLoop(url, { connections, seconds, next: () => asked });
  const after = Object.entries(await cpuOf(pids));
  const cpu = after.map(([name, us]) => [name, (us - (before[name] as number)) / done.latencies_ms.length]);
  const { latencies_ms } = done;
  return { p50: percentile(latencies_ms, 50), p95: percentile(latencies_ms, 95), bytes, ...Object.fromEntries(cpu) };
}
