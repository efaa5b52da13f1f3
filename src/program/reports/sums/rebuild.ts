import type pg from 'pg';
import sql, { join, raw } from 'sql-template-tag';
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
/** In the order in which a request writes them. Who writes to them waits for some milliseconds. */
const locked = join(
  ['click', 'referral', 'customer', 'sale', 'refund', 'commission', 'report_change'].map((table) =>
    raw(`program.${table}`),
  ),
);
const most_rows = 20_000;

/**
 * Counts anew what the reports of some programs are counted from: of those from before reports were summed, and of those whose `reports_ready`
 * an operator set to false. One connection locks the tables until the other one has a snapshot, and drops what was summed; what is written from
 * then on is noted, and what was there is noted from the snapshot. Can be begun again at any point.
 */
export async function rebuildReports(database: Database): Promise<void> {
  const writer = await database.connect();
  const reader = await database.connect();
  try {
    const programs = await dropSums(writer, reader);
    for (const program of programs)
      for (const [noun, table] of Object.entries(nouns)) await noteAll(reader, program, noun, table);
    await reader.query('commit');
    await run(
      writer,
      sql`update program.program t set reports_ready = true where t.id = any(${programs.map(({ id }) => id)})`,
    );
  } catch (error) {
    await Promise.allSettled([writer.query('rollback'), reader.query('rollback')]);
    throw error;
  } finally {
    writer.release();
    reader.release();
  }
}

export async function hasUncounted(database: Database): Promise<boolean> {
  const [{ uncounted } = { uncounted: false }] = await run<{ uncounted: boolean }>(
    database,
    sql`select exists (select from program.program t where not t.reports_ready) as uncounted`,
  );
  return uncounted;
}

async function dropSums(writer: pg.PoolClient, reader: pg.PoolClient): Promise<ProgramKey[]> {
  await writer.query('begin');
  await writer.query("set local lock_timeout = '3s'");
  await run(writer, sql`lock table ${locked} in share row exclusive mode`);
  await reader.query('begin isolation level repeatable read');
  const programs = await run<ProgramKey>(
    reader,
    sql`select t.organization_id, t.id from program.program t where not t.reports_ready order by t.organization_id, t.id`,
  );
  const ids = programs.map(({ id }) => id);
  await run(writer, sql`delete from program.report_change t where t.program_id = any(${ids})`);
  await run(writer, sql`select program.drop_report_totals(${ids})`);
  await writer.query('commit');
  return programs;
}

/** By ranges of ids, which an index leads to, so that no statement takes long, and all of them together no longer than to read the rows once. */
async function noteAll(
  reader: pg.PoolClient,
  { organization_id, id: program_id }: ProgramKey,
  noun: string,
  table: string,
): Promise<void> {
  for (let after = ''; ; ) {
    const [range] = await run<{ last: string | null }>(
      reader,
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
      reader,
      sql`
        insert into program.report_change
        select 1, f.*
        from program.report_fact f
        where f.organization_id = ${organization_id} and f.program_id = ${program_id} and f.noun = ${raw(`'${noun}'`)}
          and f.id > ${after} and f.id <= ${range.last}`,
    );
    after = range.last;
  }
}
