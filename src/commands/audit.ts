import sql from 'sql-template-tag';
import { type Database, run } from '../core/database.ts';
import { answer, table, withStore } from './command.ts';

/** Something that must always hold and does not. */
export interface Violation {
  invariant: string;
  organization_id: string;
  subject_id: string;
  detail: string;
}

/** Recomputes the invariants of money, referrals and deliveries over the whole database. @returns those that do not hold */
export const violations = (database: Database): Promise<Violation[]> =>
  run<Violation>(
    database,
    sql`
      select found.invariant, found.organization_id, found.subject_id, found.detail
      from (
        select a.invariant, a.organization_id, a.subject_id, a.detail from program.audit() as a
        union all
        select a.invariant, a.organization_id, a.subject_id, a.detail from webhooks.audit() as a
      ) as found
      order by found.invariant, found.organization_id, found.subject_id`,
  );

/** Exit code 1 tells that something is wrong with the data. */
export const audit = ({ json }: { json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const found = await violations(store.database);
    const columns = ['INVARIANT', 'ORGANIZATION', 'SUBJECT', 'DETAIL'];
    answer(found, { json, lines: table(columns, found.map(row), 'clean') });
    if (found.length > 0) process.exitCode = 1;
  });

const row = ({ invariant, organization_id, subject_id, detail }: Violation): string[] => [
  invariant,
  organization_id,
  subject_id,
  detail,
];
