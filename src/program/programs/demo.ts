import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { createProgram, NewProgram } from './create_program.ts';

/** The program of the demo organization: the one that is known, else its first, else a new one. @returns its id */
export async function openDemoProgram(tx: Tx, known_id: string | undefined): Promise<string> {
  const programs = await tx.all<{ id: string }>(
    sql`select p.id from program.program p where p.organization_id = ${tx.organization_id} order by p.id`,
  );
  const program = programs.find(({ id }) => id === known_id) ?? programs[0];
  if (program) return program.id;
  const paid_at_once = { holding_period_days: 0, min_payout_minor: 0 };
  const fields = { name: 'Demo', website_url: 'https://demo.example.com', currency: 'USD', ...paid_at_once };
  return (await createProgram(tx, NewProgram.parse(fields))).id;
}
