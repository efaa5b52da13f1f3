import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { request } from 'undici';
import { sales } from '../../src/program/sales/sale.ts';
import type { Bench, Sample } from './harness.ts';
import { openBigProgram } from './merchant.ts';
import { type Running, usedBy } from './processes.ts';
import { fill, type Owner } from './rows.ts';

const rows = Number(process.env.RAIL_BENCH_SALES ?? 1_000_000);

/** A whole list in one response, beside COPY of the same columns by Postgres alone. */
export const exports: Bench = {
  name: 'export',
  doc: `The list of ${rows.toLocaleString('en')} sales in one response.`,
  defaults: { rounds: 3, seconds: 1 },
  async setup(stack, progress) {
    const { url, server, client, merchant, organization_id, program_id } = await openBigProgram(stack);
    progress(`export: ${rows} sales`);
    await fillSales(client, { organization_id, program_id });
    const streamed = (path: string) => () => measure(server, path, merchant.headers);
    const list = `/v1/sales?program_id=${program_id}`;
    return {
      postgres_url: url,
      figures: {
        rows_per_s: { unit: '/s', better: 'higher', doc: 'rows received' },
        growth: { unit: 'MiB', better: 'lower', doc: 'what the API has more in memory at most than before' },
        size: { unit: 'MiB', better: 'lower', doc: 'what was received' },
      },
      notes: [
        'Each round reads the list once, however long that takes. RAIL_BENCH_SALES: another number of sales than a million.',
        'The API, Postgres and the reader share the machine.',
      ],
      sides: [
        {
          name: 'copy',
          doc: 'COPY … TO STDOUT (format csv) of the columns of a sale',
          run: () => copy(client, program_id),
        },
        { name: 'csv', doc: 'format=csv', baseline: 'copy', run: streamed(`${list}&format=csv`) },
        { name: 'ndjson', doc: 'format=ndjson', baseline: 'copy', run: streamed(`${list}&format=ndjson`) },
        { name: 'feed', doc: 'GET /v1/exports/sales', baseline: 'copy', run: streamed('/v1/exports/sales') },
      ],
    };
  },
};

/** Sales of one partner, beside some of everything. */
async function fillSales(client: pg.Client, owner: Owner): Promise<void> {
  await fill(client, owner, 100);
  const { rows: columns } = await client.query<{ name: string }>(
    `select attname as name from pg_attribute where attrelid = 'program.sale'::regclass and attnum > 0 and not attisdropped
      and attgenerated = '' and attname not in ('id', 'external_charge_id', 'is_first_sale', 'changed_in')`,
  );
  const names = columns.map(({ name }) => name);
  await client.query(
    `insert into program.sale (id, external_charge_id, is_first_sale, ${names.join(', ')})
    select 'sale_' || core.id_time_part(now()) || 'g' || lpad(n::text, 15, '0'), 'bulk_' || n, false, ${names.map((name) => `s.${name}`).join(', ')}
    from generate_series(1, ${rows - 100}) as n
    cross join (select * from program.sale order by id limit 1) as s`,
  );
  await client.query('vacuum (analyze)');
}

async function copy(client: pg.Client, program_id: string): Promise<Sample> {
  const columns = Object.keys(sales.fields).filter((name) => name !== 'object');
  const began = performance.now();
  await client.query(
    `copy (select ${columns.join(', ')} from program.sale where program_id = '${program_id}' order by id desc) to stdout (format csv)`,
  );
  return { rows_per_s: rows / ((performance.now() - began) / 1_000) };
}

/** @throws Error when not every row came */
async function measure({ url, pid }: Running, path: string, headers: Record<string, string>): Promise<Sample> {
  const before = (await usedBy(pid))?.memory_bytes ?? 0;
  let most = before;
  let is_reading = true;
  const watch = (async () => {
    while (is_reading) {
      most = Math.max(most, (await usedBy(pid))?.memory_bytes ?? 0);
      await sleep(100);
    }
  })();
  const began = performance.now();
  const { body } = await request(url + path, { headers });
  let lines = 0;
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines++;
  }
  const seconds = (performance.now() - began) / 1_000;
  is_reading = false;
  await watch;
  if (lines < rows) throw new Error(`${path} gave ${lines} lines, and not ${rows}.`);
  const mib = 1024 * 1024;
  return { rows_per_s: rows / seconds, growth: (most - before) / mib, size: bytes / mib };
}
