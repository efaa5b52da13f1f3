import sql from 'sql-template-tag';
import type { Tx } from '../postgres/transaction.ts';
import { newId } from '../values/id.ts';
import { Problem } from '../values/problem.ts';

/** The lifetime of a position. */
export const position_days = 90;
/** A position is given out again where nothing changed since, unless it is older than this. */
const renewed_after_days = 1;

export interface Position {
  id: string;
  /** The snapshot, in Postgres' form of a `pg_snapshot`. */
  snapshot: string;
  renew: boolean;
}

/**
 * A position that was given out before, for this resource.
 * @throws Problem invalid_position when this database did not give it out: it was restored from before that, or from a dump
 */
export async function positionOf(tx: Tx, id: string, resource: string): Promise<Position> {
  const known = await tx.maybe<Position & { resource: string; is_here: boolean }>(sql`
    select t.id, t.resource, t.snapshot::text as snapshot, t.epoch = core.database_epoch() as is_here,
      t.created_at < ${tx.now}::timestamptz - make_interval(days => ${renewed_after_days}) as renew
    from core.export_position t
    where t.organization_id = ${tx.organization_id} and t.id = ${id}`);
  if (known?.is_here && known.resource === resource) return known;
  throw new Problem('invalid_position', `${reasonOf(id, resource, known)} Export '${resource}' without 'since'.`, {
    param: 'since',
  });
}

function reasonOf(id: string, resource: string, known: { resource: string; is_here: boolean } | undefined): string {
  if (known && known.resource !== resource) return `The position '${id}' is of '${known.resource}'.`;
  if (known) return 'The position is of the database from which this one was restored.';
  return `The position '${id}' is unknown: no export returned it, or it is older than ${position_days} days, or the database was restored to a time before it.`;
}

/**
 * Gives out the position of what this transaction sees, which is to be the last thing that it does: whatever it saw was committed before
 * this, so that a database that has the position has all that came before it too.
 */
export async function givePosition(tx: Tx, resource: string): Promise<string> {
  const id = newId('pos');
  await tx.all(sql`
    insert into core.export_position (organization_id, id, resource, snapshot, epoch, created_at)
    values (${tx.organization_id}, ${id}, ${resource}, pg_current_snapshot(), core.database_epoch(), ${tx.now}::timestamptz)`);
  return id;
}
