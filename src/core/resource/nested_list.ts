import type { Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { RowStream } from '../formats/row_stream.ts';
import type { Tx } from '../postgres/transaction.ts';
import { list } from './list.ts';
import type { ListOptions } from './list_query.ts';
import { type Caller, idParams, type Operation, operation } from './operation.ts';
import type { Row } from './resource.ts';
import type { Services } from './services.ts';

type Described = Pick<Operation, 'name' | 'title' | 'path' | 'scope' | 'summary' | 'errors' | 'test_keys'>;

interface NestedList {
  of: ListOptions;
  /** The object that the path names. @throws Problem resource_not_found */
  parent: (context: { tx: Tx; caller: Caller }, id: string) => Promise<{ id: string }>;
  /** The rows of the parent. */
  where: (parent_id: string) => Sql;
  /** A condition that a cursor must match too. */
  cursor?: (parent_id: string) => Sql;
  /** Returns the public form of a row, where that is not the stored row. */
  shown?: (row: Row, services: Services) => Row;
}

/** The list of what belongs to one object, at a path below it: `GET /prospects/{id}/notes`. */
export function nestedListOperation(described: Described, { of, parent, where, cursor, shown }: NestedList): Operation {
  const within = { schema: z.never().optional(), where, ...(cursor ? { cursor } : {}) };
  const { query, reply, page, stream } = list({ ...of, filters: { ...of.filters, parent_id: within } });
  const ofParent = async (context: { tx: Tx; caller: Caller; params: { id: string }; query: object }) => ({
    ...context.query,
    parent_id: (await parent(context, context.params.id)).id,
  });
  return operation({
    ...described,
    method: 'GET',
    params: idParams,
    query: (query as z.ZodObject).omit({ parent_id: true }),
    reply,
    async run(context) {
      const { tx, caller, services, counts_to } = context;
      const found = await page(tx, await ofParent(context), caller.scopes, counts_to);
      return shown ? { ...found, data: found.data.map((row) => shown(row, services)) } : found;
    },
    async stream(context) {
      const { tx, caller, services, format } = context;
      const all = await stream(tx, await ofParent(context), caller.scopes, format);
      return shown ? { ...all, rows: eachShown(all.rows, (row) => shown(row, services)) } : all;
    },
  });
}

async function* eachShown(batches: RowStream['rows'], shown: (row: Row) => Row) {
  for await (const rows of batches) yield rows.map((row) => shown(row as Row));
}
