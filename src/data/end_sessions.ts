import type { Logger } from 'pino';
import sql from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';

interface EndedSession {
  pid: number;
  role_name: string;
  reason: string;
}

/** Ends sessions of data teams that run too long, or whose login is revoked or has expired, and logs each. */
export async function endSessions(tx: Tx, log: Logger): Promise<void> {
  const ended = await tx.all<EndedSession>(sql`select e.pid, e.role_name, e.reason from data.end_sessions() e`);
  for (const session of ended) log.warn(session, 'ended a session of a data team');
}
