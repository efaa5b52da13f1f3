import sql from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';
import { tenant } from '../core/resource/resource.ts';
import { notFound, Problem } from '../core/values/problem.ts';
import { groups } from './partners/group.ts';
import { type Program, programs } from './programs/program.ts';
import { isWithinBounds, rate_bound } from './tracking/link.ts';

/** What the recruitment service may ask of the affiliate program service: this file is all that it imports of it. */

export { rate_units } from './tracking/link.ts';

/** The program that a brand or a deal is linked to. @throws Problem resource_not_found, naming `param` */
export const linkedProgram = (tx: Tx, program_id: string, param = 'program_id'): Promise<Program> =>
  programs.get(tx, program_id, { param, lock: 'share' });

interface RuleTerms {
  rate_type: 'percent' | 'fixed';
  rate_value: number;
  currency: string;
  group_id: string | null;
}

/**
 * Whether a program can have a rule with these terms.
 * @param within the field of the request that holds them
 * @throws Problem resource_not_found, invalid_parameter, currency_mismatch, naming the field
 */
export async function requireTermsOf(
  tx: Tx,
  program_id: string,
  { rate_type, rate_value, currency, group_id }: RuleTerms,
  within: string,
): Promise<void> {
  const program = await linkedProgram(tx, program_id);
  if (!isWithinBounds({ rate_type, rate_value })) {
    const param = `${within}.rate_value`;
    throw new Problem('invalid_parameter', `'${param}' ${rate_bound}.`, { param });
  }
  if (rate_type === 'fixed' && currency !== program.currency) throw wrongCurrency(program, `${within}.currency`);
  if (group_id !== null && !(await isGroupOf(tx, program_id, group_id))) {
    throw notFound('group', group_id, `${within}.group_id`);
  }
}

const wrongCurrency = ({ currency }: Program, param: string): Problem =>
  new Problem(
    'currency_mismatch',
    `'${param}' must be ${currency}: a fixed rate is in the currency of the program. Send ${currency}, or a percent rate.`,
    { param },
  );

const isGroupOf = async (tx: Tx, program_id: string, group_id: string): Promise<boolean> =>
  (await groups.find(tx, sql`${tenant(tx)} and t.program_id = ${program_id} and t.id = ${group_id}`)) !== undefined;
