import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { nestedListOperation } from '../../core/resource/nested_list.ts';
import type { Operation } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { base_path } from '../events/base_path.ts';
import { imports } from './import.ts';
import type { Row } from './row.ts';

export const importErrors = resource({
  object: 'import_error',
  plural: 'import_errors',
  scoped_as: 'prospects',
  table: 'recruitment.import_error',
  doc: 'A row that an import refused. The others of its file are imported.',
  fields: {
    id: id('fie'),
    object: objectName('import_error'),
    import_id: id('fim').describe('The import.'),
    line: z.int().describe('The line of the file that the row ends on. The first line is 1.'),
    field: text.nullable().describe('The field that is wrong. Null: the whole row.'),
    reason: text.describe('What is wrong with it.'),
    created_at: timestamp,
  },
});

/** Writes down which rows were refused, and why. */
export function recordErrors(tx: Tx, import_id: string, rows: Row[]): void {
  const errors = rows.flatMap(({ line, fault }) => (fault ? [{ id: newId('fie'), line, ...fault }] : []));
  if (errors.length === 0) return;
  tx.send(sql`
    insert into recruitment.import_error (organization_id, id, import_id, line, field, reason, created_at)
    select ${tx.organization_id}, r.id, ${import_id}, r.line, r.field, r.reason, ${tx.now}::timestamptz
    from json_to_recordset(${JSON.stringify(errors)}::json) as r (id text, line integer, field text, reason text)`);
}

export const importErrorOperations: Operation[] = [
  nestedListOperation(
    {
      name: 'imports.list_errors',
      title: 'List the rows that an import refused',
      path: `${base_path}/imports/{id}/errors`,
      scope: 'prospects:read',
      summary: 'Lists the rows that an import refused, in the order of the file.',
    },
    {
      of: { resource: importErrors, order: { by: 'line', oldest_first: true }, by: ['field'] },
      parent: ({ tx }, id) => imports.get(tx, id),
      where: (import_id) => sql`t.import_id = ${import_id}`,
      cursor: (import_id) => sql`t.import_id = ${import_id}`,
    },
  ),
];
