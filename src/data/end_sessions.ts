import type { Logger } from 'pino';
import sql from 'sql-template-tag';
import { run } from '../core/postgres/database.ts';
import type { Store } from '../core/postgres/transaction.ts';

interface EndedSession {
  pid: number;
  role_name: string;
  reason: string;
}

/** Ends sessions of data teams that run too long, or whose login is revoked or has expired, on the replica too, and logs each. */
export async function endSessions({ database, replica }: Store, log: Logger): Promise<void> {
  for (const on of replica ? [database, replica] : [database]) {
    const ended = await run<EndedSession>(on, sql`select e.pid, e.role_name, e.reason from data.end_sessions() e`);
    for (const session of ended) log.warn(session, 'ended a session of a data team');
  }
}
