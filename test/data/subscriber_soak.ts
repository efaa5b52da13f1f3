/** `npm run soak -- subscriber`: a warehouse that subscribes to the publication `rail_data`, in a second database of a Postgres of its own. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t from 'tap';
import { buildApi } from '../../src/api.ts';
import { createKey } from '../../src/core/access/api_key.ts';
import { createOrganization } from '../../src/core/access/organization.ts';
import { openDatabase } from '../../src/core/postgres/database.ts';
import { writeEvents } from '../../src/products.ts';
import { startPostgres } from '../bench/processes.ts';
import { fill, type Owner } from '../bench/rows.ts';
import { log, services } from '../harness.ts';

const deadline_ms = 120_000;
const rows = 1_000;

interface Table {
  name: string;
  /** As `create table` has them. */
  columns: string[];
  names: string[];
  key: string[];
}

export function soakSubscriber(): void {
  t.setTimeout(4 * deadline_ms);
  t.test('a subscriber has the rows of every published table, also those that are written later', async (t) => {
    await using stack = new AsyncDisposableStack();
    const url = await startPostgres(stack, { wal_level: 'logical' });
    const service = await open(stack, url, 'rail');
    await service.query('create database warehouse');
    const warehouse = await open(stack, url, 'warehouse');
    const openProgram = await programs(stack, url);
    await fill(service, await openProgram(), rows);

    const tables = await publish(service);
    for (const table of tables) await warehouse.query(definitionOf(table));
    await subscribe(service, warehouse, url);
    t.same(await differing(service, warehouse, tables), [], 'what was there before');

    await fill(service, await openProgram(), rows);
    const updated = await service.query("update program.partner set first_name = 'Changed'");
    const deleted = await service.query('delete from program.risk_flag');
    t.ok((updated.rowCount ?? 0) > 0 && (deleted.rowCount ?? 0) > 0);
    t.same(await differing(service, warehouse, tables), [], 'what was inserted, updated and deleted since');
    await warehouse.query('drop subscription warehouse');
  });
}

async function open(stack: AsyncDisposableStack, url: string, database: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: Object.assign(new URL(url), { pathname: database }).href });
  await client.connect();
  stack.defer(() => client.end());
  return client;
}

/** @returns makes a program of an organization of its own */
async function programs(stack: AsyncDisposableStack, url: string): Promise<() => Promise<Owner>> {
  const database = openDatabase(url, { size: 2, name: 'rail soak' });
  stack.defer(() => database.end());
  const app = await buildApi({ store: { database, writeEvents }, services, log });
  stack.defer(() => app.close());
  return async () => {
    const { id: organization_id } = await createOrganization(database, {
      name: 'Acme',
      owner_email: 'owner@acme.example.com',
    });
    const key = { organization_id, name: 'soak', mode: 'live' as const, scopes: ['*'], rate_limit: 1_000 };
    const { secret } = await createKey(database, key);
    const answer = await app.inject({
      method: 'POST',
      url: '/v1/programs',
      headers: { authorization: `Bearer ${secret}` },
      payload: { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' },
    });
    return { organization_id, program_id: answer.json().id };
  };
}

/** As an operator does it: see /docs/data. */
async function publish(service: pg.Client): Promise<Table[]> {
  const { rows } = await service.query<{ statement: string }>('select data.publication_statement() as statement');
  await service.query(rows[0]?.statement as string);
  const { rows: tables } = await service.query<Table>(`
    select t.oid::regclass::text as name,
      array_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)) order by a.attnum) as columns,
      array_agg(quote_ident(a.attname) order by a.attnum) as names,
      (
        select array_agg(quote_ident(k.attname)::text)
        from pg_index i
        join pg_attribute k on k.attrelid = i.indrelid and k.attnum = any(i.indkey)
        where i.indrelid = t.oid and i.indisprimary
      ) as key
    from pg_publication_tables p
    join pg_class t on t.oid = format('%I.%I', p.schemaname, p.tablename)::regclass
    join pg_attribute a on a.attrelid = t.oid and a.attname = any(p.attnames)
    where p.pubname = 'rail_data'
    group by t.oid`);
  return tables;
}

const definitionOf = ({ name, columns, key }: Table): string => `
  create schema if not exists ${name.split('.')[0]};
  create table ${name} (${columns.join(', ')}, primary key (${key.join(', ')}))`;

/** Within one Postgres, the slot has to be there before. */
async function subscribe(service: pg.Client, warehouse: pg.Client, url: string): Promise<void> {
  await service.query("select pg_create_logical_replication_slot('warehouse', 'pgoutput')");
  await warehouse.query(`
    create subscription warehouse connection '${url}' publication rail_data
    with (slot_name = 'warehouse', create_slot = false)`);
}

/** The tables that do not hold the same on both sides, once that has had time to arrive. */
async function differing(service: pg.Client, warehouse: pg.Client, tables: Table[]): Promise<string[]> {
  let left = tables;
  for (const end = Date.now() + deadline_ms; left.length > 0 && Date.now() < end; await sleep(500)) {
    const differ: Table[] = [];
    for (const table of left)
      if ((await contentOf(service, table)) !== (await contentOf(warehouse, table))) differ.push(table);
    left = differ;
  }
  return left.map(({ name }) => name);
}

async function contentOf(client: pg.Client, { name, names }: Table): Promise<string> {
  const { rows } = await client.query<{ content: string }>(`
    select count(*) || ' ' || coalesce(md5(string_agg(r.line, ',' order by r.line)), '') as content
    from (select (row(${names.map((column) => `t.${column}`).join(', ')}))::text collate "C" as line from ${name} t) r`);
  return rows[0]?.content as string;
}
