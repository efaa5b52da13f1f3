import type { Tx } from '../core/postgres/transaction.ts';
import { type Program, programs } from './programs/program.ts';

/** What the recruitment service may ask of the affiliate program service: this file is all that it imports of it. */

/** The program that a brand or a deal is linked to. @throws Problem resource_not_found, naming `param` */
export const linkedProgram = (tx: Tx, program_id: string, param = 'program_id'): Promise<Program> =>
  programs.get(tx, program_id, { param, lock: 'share' });
