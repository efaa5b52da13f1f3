/** Answers `/readyz?verbose` about a process: nothing secret, and nothing of tenants. */

import { waitingFor } from '../pool/lending.ts';
import type { Database } from '../postgres/database.ts';
import { skewMs } from '../values/clock.ts';
import { heldNow } from './hold.ts';

export interface Condition {
  name: string;
  state: 'ok' | 'warning' | 'error';
  /** The problem. Null: none. */
  text: string | null;
}

export interface Readiness {
  /** Returns what is missing, as a sentence; undefined where nothing is. */
  why(on: Pick<Database, 'query'>): Promise<string | undefined>;
  /** Each condition by itself. */
  conditions(on: Pick<Database, 'query'>): Promise<Condition[]>;
}

/** Returns the answer to `?verbose`: also what the process knows of itself. */
export function verboseReadiness(found: Condition[], database: Database) {
  const { totalCount, idleCount, options } = database;
  const skew_s = skewMs() / 1_000;
  const clock: Condition = {
    name: 'clock',
    state: skew_s === 0 ? 'ok' : 'warning',
    text: skew_s === 0 ? null : `The clock differs from Postgres' by ${skew_s} seconds: no jobs are scheduled here.`,
  };
  const is_ready = found.every(({ state }) => state !== 'error');
  return {
    status: is_ready ? 'ready' : 'not_ready',
    ...heldNow(),
    checks: [...found, clock],
    connections: { in_use: totalCount - idleCount, idle: idleCount, most: options.max, waiting: waitingFor(database) },
  };
}

/** The condition of a database that does not answer. */
export const unreachable: Condition = { name: 'database', state: 'error', text: 'The database does not answer.' };

/** Returns whether a URL asks for it: `?verbose`, also with a value. */
export const isVerbose = (url: string): boolean => new URLSearchParams(url.split('?')[1]).has('verbose');
