import type { Tx } from '../postgres/transaction.ts';
import { deletedMarker } from './deleted_marker.ts';
import { type AnyResource, type Relations, type Row, readScope } from './resource.ts';
import { requireScope } from './scope.ts';

/** Inlines the relations that `expand` names and adds what `include` names, one statement each, whatever the number of rows. @returns the same rows */
export async function enrich<T extends object>(
  tx: Tx,
  resource: AnyResource,
  rows: T[],
  { expand, include }: { expand: string[]; include: string[] },
  scopes: string[],
): Promise<T[]> {
  const enriched = rows as unknown as Row[];
  await Promise.all([
    ...expand.map((name) => inline(tx, resource, enriched, name, scopes)),
    include.includes('stats') && addStats(tx, resource, enriched),
  ]);
  return rows;
}

/** @throws Problem insufficient_scope where the key may not read the relation */
async function inline(tx: Tx, resource: AnyResource, rows: Row[], name: string, scopes: string[]): Promise<void> {
  const { resource: target, field } = (resource.relations as Relations)[name] as Relations[string];
  requireScope(scopes, readScope(target));
  const ids = [...new Set(rows.map((row) => row[field]).filter((id) => id !== null))] as string[];
  const records = ids.length > 0 ? await target.byIds(tx, ids) : [];
  const by_id = new Map(records.map((record) => [record.id, record]));
  for (const row of rows) {
    const id = row[field] as string | null;
    row[name] = id === null ? null : (by_id.get(id) ?? deletedMarker(target.object, id));
  }
}

async function addStats(tx: Tx, resource: AnyResource, rows: Row[]): Promise<void> {
  const stats = await resource.stats?.load(tx, rows);
  if (stats) for (const row of rows) row.stats = stats.get(row.id);
}
