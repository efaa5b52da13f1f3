import sql from 'sql-template-tag';
import { type Database, run } from '../../core/postgres/database.ts';

/** The organization of a program. @throws Error when there is no such program */
export async function organizationOf(database: Database, program_id: string): Promise<string> {
  const [program] = await run<{ organization_id: string }>(
    database,
    sql`select organization_id from program.program where id = ${program_id}`,
  );
  if (!program) throw new Error(`There is no program '${program_id}'.`);
  return program.organization_id;
}
