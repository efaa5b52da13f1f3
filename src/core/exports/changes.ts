import sql, { raw, type Sql } from 'sql-template-tag';
import type { Tx } from '../postgres/transaction.ts';
import { deletedMarker } from '../resource/deleted_marker.ts';
import { type AnyResource, type Row, tenant } from '../resource/resource.ts';
import { givePosition, positionOf } from './position.ts';

/** The last line of an export. */
export interface End {
  object: 'export_position';
  resource: string;
  position: string;
}

/**
 * The rows of a resource, or those that changed since a position, each once and as it is now; deleted ones as deleted markers. The last one
 * is the next position. All are read in one state of the database, which is that of the position.
 * @throws Problem invalid_position
 */
export async function* changesOf(tx: Tx, resource: AnyResource, since: string | undefined): AsyncGenerator<object[]> {
  const { plural } = resource;
  const before = since === undefined ? undefined : await positionOf(tx, since, plural);
  let count = 0;
  for (const statement of before ? changesSince(tx, resource, before.snapshot) : [allRows(tx, resource)]) {
    for await (const rows of tx.batches<Row & { exists_now: boolean }>(statement)) {
      count += rows.length;
      yield rows.map(({ exists_now, ...row }) => (exists_now ? row : deletedMarker(resource.object, row.id)));
    }
  }
  const is_same = before !== undefined && count === 0 && !before.renew;
  const position = is_same ? before.id : await givePosition(tx, plural);
  yield [{ object: 'export_position', resource: plural, position } satisfies End];
}

const allRows = (tx: Tx, { columns, from, alive }: AnyResource): Sql =>
  sql`select ${columns}, true as exists_now from ${from} where ${tenant(tx)} and ${alive}`;

function changesSince(tx: Tx, resource: AnyResource, snapshot: string): Sql[] {
  const { columns, from, alive, object, hard_delete, changes_with } = resource;
  const own = sql`${tenant(tx)} and ${isNewTo('t', snapshot)}`;
  const changed = changes_with
    ? sql`${tenant(tx)} and (${isNewTo('t', snapshot)} or t.id in (${idsChangedBy(tx, changes_with, snapshot)}))`
    : own;
  const rows = sql`select ${columns}, ${alive} as exists_now from ${from} where ${changed}`;
  if (hard_delete === undefined) return [rows];
  const deleted = sql`select t.id, false as exists_now from core.deleted_object t where ${own} and t.object = ${object}`;
  return [rows, deleted];
}

const idsChangedBy = (tx: Tx, { table, field }: { table: string; field: string }, snapshot: string): Sql =>
  sql`select o.${raw(field)} from ${raw(table)} o where o.organization_id = ${tx.organization_id} and ${isNewTo('o', snapshot)}`;

/**
 * Returns whether a row was written by a transaction that the snapshot did not see. A visible row cannot be of a transaction that is still to begin:
 * such a number is of another database, from which this one was restored. It is compared as a bigint too: for a table whose index of it is of ranges
 * of pages (BRIN), which knows no transactions.
 */
const isNewTo = (row: 't' | 'o', snapshot: string): Sql => {
  const changed_in = raw(`${row}.changed_in`);
  return sql`(${changed_in} >= pg_snapshot_xmin(${snapshot}::pg_snapshot) and ${changed_in} < pg_snapshot_xmax(pg_current_snapshot())
    and ${changed_in}::text::bigint >= pg_snapshot_xmin(${snapshot}::pg_snapshot)::text::bigint
    and not pg_visible_in_snapshot(${changed_in}, ${snapshot}::pg_snapshot))`;
};
