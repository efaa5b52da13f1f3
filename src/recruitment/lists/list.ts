import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { DeletedMarker } from '../../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { type Row, resource, tenant } from '../../core/resource/resource.ts';
import { id, objectName, oneLine, text, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { alreadyExists } from '../../core/values/problem.ts';
import { brands } from '../brands/brand.ts';
import { base_path } from '../events/base_path.ts';
import { brand_id } from '../events/fields.ts';

export const lists = resource({
  object: 'list',
  plural: 'lists',
  listed_as: 'the lists of a brand',
  base_path,
  table: 'recruitment.list',
  unique: { list_name_unique: 'name' },
  hard_delete: 'brand_id',
  doc: 'A list of prospects of a brand.',
  relations: { brand: brands },
  fields: {
    id: id('fls'),
    object: objectName('list'),
    brand_id,
    name: text.describe('The name of the list. Unique in the brand; letter case is ignored.'),
    description: text.nullable().describe('What the list is for. Null if not provided.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
  stats: {
    fields: { prospects: z.int().describe('Prospects in the list.') },
    load: countProspects,
  },
});

export type List = z.infer<typeof lists.record>;

const name = oneLine(100);
const description = text.max(2000).nullable();

export const listOperations: Operation[] = [
  ...readOperations({ resource: lists, within: brands }),
  operation({
    name: 'lists.create',
    method: 'POST',
    path: `${base_path}/lists`,
    scope: 'lists:write',
    summary: 'Creates a list.',
    body: z.strictObject({ brand_id, name, description: description.optional() }),
    reply: lists.schema,
    status: 201,
    errors: ['resource_already_exists'],
    async run({ tx, body }) {
      await brands.get(tx, body.brand_id, { param: 'brand_id' });
      const created = await lists.insert(tx, { ...body, id: newId('fls') }, sql`on conflict do nothing`);
      if (!created) throw nameTaken(body.name, await listNamed(tx, body.brand_id, body.name));
      return created;
    },
  }),
  operation({
    name: 'lists.update',
    method: 'PATCH',
    path: `${base_path}/lists/{id}`,
    scope: 'lists:write',
    summary: 'Updates the name or the description of a list.',
    params: idParams,
    body: z.strictObject({ name, description }).partial(),
    reply: lists.schema,
    errors: ['resource_already_exists'],
    async run({ tx, params, body }) {
      const before = await lists.get(tx, params.id, { lock: true });
      const existing = await listNamed(tx, before.brand_id, body.name ?? before.name);
      if (existing && existing.id !== before.id) throw nameTaken(existing.name, existing);
      return lists.update(tx, params.id, body);
    },
  }),
  operation({
    name: 'lists.delete',
    method: 'DELETE',
    path: `${base_path}/lists/{id}`,
    scope: 'lists:write',
    summary: 'Deletes a list. Its prospects stay, and stay saved.',
    params: idParams,
    reply: DeletedMarker,
    async run({ tx, params }) {
      await lists.get(tx, params.id, { lock: true });
      await lists.deleteOutright(tx, params.id);
      return { id: params.id, object: 'list', deleted: true as const };
    },
  }),
];

const listNamed = (tx: Tx, of_brand: string, wanted: string): Promise<List | undefined> =>
  lists.find(tx, sql`${tenant(tx)} and t.brand_id = ${of_brand} and lower(t.name) = lower(${wanted})`);

const nameTaken = (taken: string, existing: List | undefined) =>
  alreadyExists('name', `A list named '${taken}' already exists in this brand.`, existing);

async function countProspects(tx: Tx, rows: Row[]): Promise<Map<string, object>> {
  const ids = rows.map((row) => row.id);
  const counts = await tx.all<{ id: string; prospects: number }>(sql`
    select given.id, (
      select count(*) from recruitment.list_prospect t where ${tenant(tx)} and t.list_id = given.id
    ) as prospects
    from unnest(${ids}::text[]) as given (id)`);
  return new Map(counts.map(({ id: list_id, prospects }) => [list_id, { prospects }]));
}
