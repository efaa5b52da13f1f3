import { randomBytes } from 'node:crypto';
import sql from 'sql-template-tag';
import { openDatabase, run } from '../../src/core/postgres/database.ts';
import { most_in_bulk } from '../../src/core/resource/bulk.ts';
import type { Bench, Sample } from './harness.ts';
import { type Asked, closedLoop } from './load.ts';
import { makeMerchant } from './merchant.ts';
import { cpuOf, postmasterOf, type Running, startNode, startPostgres } from './processes.ts';
import { makeProgram } from './slice.ts';

/** Sales in bulk beside a bare Fastify route with one insert, by the rows that each writes. */
export const salesBulk: Bench = {
  name: 'bulk',
  doc: `POST /v1/sales/bulk with ${most_in_bulk.toLocaleString('en')} sales a request, beside a bare Fastify route with one insert.`,
  async setup(stack, progress) {
    const url = await startPostgres(stack);
    const environment = {
      DATABASE_URL: url,
      DATABASE_POOL_SIZE: '20',
      RAIL_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
      LOG_LEVEL: 'info',
    };
    const bare = await startNode(stack, 'bare.ts', [], environment, { path: '/readyz' });
    const api = await startNode(stack, '../../src/rail.js', ['api'], environment, { path: '/readyz' });
    const database = openDatabase(url, { size: 4, name: 'rail bench' });
    stack.defer(() => database.end());
    progress('bulk: making customers');
    const sale = await makeProgram(database, await makeMerchant(database, api), undefined);
    const postgres = await postmasterOf(url);
    const listOf = (one: () => Asked) => (): Asked => {
      const list = Array.from({ length: most_in_bulk }, one);
      return { ...(list[0] as Asked), path: '/v1/sales/bulk', body: `[${list.map(({ body }) => body).join()}]` };
    };
    const bulk = listOf(sale);
    const [{ id: partner_id }] = (await run<{ id: string }>(database, sql`select id from program.partner limit 1`)) as [
      { id: string },
    ];
    const first = listOf(() => {
      const asked = sale();
      const { customer_id: _, ...body } = JSON.parse(asked.body as string);
      const external_customer_id = `cus ${body.external_charge_id}`;
      return { ...asked, body: JSON.stringify({ ...body, external_customer_id, partner_id }) };
    });
    return {
      postgres_url: url,
      figures: {
        rows: { unit: '/s', better: 'higher', doc: 'sales, or rows of the bare route, written in a second' },
        server_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a row, of the process that answers' },
        postgres_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a row, of Postgres' },
      },
      notes: [
        'No worker runs. Each sale is of a customer who has bought before, or of a new one, with a percent rule, and makes two events.',
      ],
      sides: [
        {
          name: 'bare',
          doc: 'a Fastify route with one insert … returning, 16 connections',
          run: (seconds) =>
            written(bare, postgres, { connections: 16, seconds, next: () => ({ ...sale(), path: '/bare' }) }, 1),
        },
        {
          name: 'bulk',
          doc: `POST /v1/sales/bulk with ${most_in_bulk.toLocaleString('en')} sales, 2 connections`,
          baseline: 'bare',
          run: (seconds) => written(api, postgres, { connections: 2, seconds, next: bulk }, most_in_bulk),
        },
        {
          name: 'first sales',
          doc: 'the same, with sales that make their customers',
          baseline: 'bare',
          run: (seconds) => written(api, postgres, { connections: 2, seconds, next: first }, most_in_bulk),
        },
      ],
    };
  },
};

async function written(
  server: Running,
  postgres: number | undefined,
  load: Parameters<typeof closedLoop>[1],
  rows_each: number,
): Promise<Sample> {
  const pids = { server_cpu: server.pid, postgres_cpu: postgres };
  const before = await cpuOf(pids);
  const { latencies_ms, seconds } = await closedLoop(server.url, load);
  const rows = latencies_ms.length * rows_each;
  const cpu = Object.entries(await cpuOf(pids)).map(([name, us]) => [name, (us - (before[name] as number)) / rows]);
  return { rows: rows / seconds, ...Object.fromEntries(cpu) };
}
