import pg from 'pg';
import sql, { join, raw, type Sql } from 'sql-template-tag';
import { run } from '../core/postgres/database.ts';
import { audits } from '../products.ts';
import { answer, table, withStore } from './command.ts';

/** Something that must always hold and does not. */
export interface Violation {
  invariant: string;
  organization_id: string;
  subject_id: string;
  detail: string;
}

/** Recomputes what must always hold, of every product and of deliveries, over the whole database. @returns what does not hold */
export const violations = (on: Pick<pg.Pool, 'query'>): Promise<Violation[]> =>
  run<Violation>(
    on,
    sql`
      select found.invariant, found.organization_id, found.subject_id, found.detail
      from (${join(audits.map(foundBy), ' union all ')}) as found
      order by found.invariant, found.organization_id, found.subject_id`,
  );

const foundBy = (audit: string): Sql =>
  sql`select a.invariant, a.organization_id, a.subject_id, a.detail from ${raw(audit)}() as a`;

/** Exit code 1: something is wrong with the data. */
export const audit = ({ json }: { json?: boolean }): Promise<void> =>
  withStore(async ({ url }) => {
    const found = await withoutTimeout(url, violations);
    const columns = ['INVARIANT', 'ORGANIZATION', 'SUBJECT', 'DETAIL'];
    answer(found, { json, lines: table(columns, found.map(row), 'clean') });
    if (found.length > 0) process.exitCode = 1;
  });

/** To recompute a large database takes longer than a statement of a request may. */
async function withoutTimeout<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, application_name: 'rail audit' });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const row = ({ invariant, organization_id, subject_id, detail }: Violation): string[] => [
  invariant,
  organization_id,
  subject_id,
  detail,
];
