import type pg from 'pg';
import sql, { raw } from 'sql-template-tag';
import { type Database, run } from '../../../core/postgres/database.ts';

interface ProgramKey {
  organization_id: string;
  id: string;
}

/** The table whose ids the facts of a noun have. */
const nouns = {
  ...{ click: 'click', referral: 'referral', lead: 'customer', customer: 'customer', sale: 'sale', refund: 'refund' },
  ...{ commission: 'commission', clawback: 'commission', paid: 'commission' },
};
const most_rows = 20_000;

/**
 * Counts anew the sums of the programs whose `reports_ready` an operator set to false: drops them, and notes the facts that the snapshot of their
 * organization sees, as of one state of the database, while nobody folds. Can be begun again at any point.
 */
export async function rebuildReports(database: Database): Promise<void> {
  const client = await database.connect();
  try {
    await client.query('begin isolation level repeatable read');
    const programs = await dropSums(client);
    for (const program of programs)
      for (const [noun, table] of Object.entries(nouns)) await noteAll(client, program, noun, table);
    await run(
      client,
      sql`update program.program t set reports_ready = true where t.id = any(${programs.map(({ id }) => id)})`,
    );
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw error;
  } finally {
    client.release();
  }
}

export async function hasUncounted(database: Database): Promise<boolean> {
  const [{ uncounted } = { uncounted: false }] = await run<{ uncounted: boolean }>(
    database,
    sql`select exists (select from program.program t where not t.reports_ready) as uncounted`,
  );
  return uncounted;
}

async function dropSums(client: pg.PoolClient): Promise<ProgramKey[]> {
  const programs = await run<ProgramKey>(
    client,
    sql`
      select t.organization_id, t.id
      from program.program t
      join program.fold f on f.organization_id = t.organization_id and f.sums = 'reports'
      where not t.reports_ready
      order by t.organization_id, t.id
      for update of f`,
  );
  const ids = programs.map(({ id }) => id);
  await run(client, sql`delete from program.report_note t where t.program_id = any(${ids})`);
  await run(client, sql`select program.drop_report_totals(${ids})`);
  return programs;
}

/** By ranges of ids, which an index leads to, so that no statement takes long, and all of them together no longer than to read the rows once. */
async function noteAll(
  client: pg.PoolClient,
  { organization_id, id: program_id }: ProgramKey,
  noun: string,
  table: string,
): Promise<void> {
  for (let after = ''; ; ) {
    const [range] = await run<{ last: string | null }>(
      client,
      sql`
        select max(r.id) as last
        from (
          select t.id from program.${raw(table)} t
          where t.organization_id = ${organization_id} and t.id > ${after}
          order by t.id
          limit ${most_rows}
        ) r`,
    );
    if (!range?.last) return;
    await run(
      client,
      sql`
        insert into program.report_note
        select 1, f.*
        from program.report_fact f
        join program.fold d on d.organization_id = f.organization_id and d.sums = 'reports' and pg_visible_in_snapshot(f.inserted_in, d.seen)
        where f.organization_id = ${organization_id} and f.program_id = ${program_id} and f.noun = ${raw(`'${noun}'`)}
          and f.id > ${after} and f.id <= ${range.last}`,
    );
    after = range.last;
  }
}
