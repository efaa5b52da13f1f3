import sql from 'sql-template-tag';
import { z } from 'zod';
import { most_at_once } from '../../core/jobs/task.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { DeletedMarker } from '../../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { alreadyExists, Problem } from '../../core/values/problem.ts';
import { unmistakable } from '../../core/values/typed_code.ts';
import { event } from '../events/event.ts';
import { program_id } from '../events/fields.ts';
import { programs } from '../programs/program.ts';

export const tags = resource({
  object: 'tag',
  plural: 'tags',
  table: 'program.tag',
  unique: { tag_name_unique: 'name' },
  soft_delete: true,
  hard_delete: 'program_id',
  doc: 'A label for partners. Commission rules can apply to partners with a certain tag.',
  fields: {
    id: id('tag'),
    object: objectName('tag'),
    program_id,
    name: text.describe('The name of the tag. Unique in the program; letter case is ignored.'),
    color: text.describe('The color as `#RRGGBB`.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type Tag = z.infer<typeof tags.record>;

const name = unmistakable(1, 100);
const color = text.regex(/^#[0-9A-Fa-f]{6}$/, 'must be # and 6 hexadecimal digits, as in #1A2B3C');

export const tagOperations: Operation[] = [
  ...readOperations({ resource: tags, within: programs }),
  operation({
    name: 'tags.create',
    method: 'POST',
    path: '/v1/tags',
    scope: 'tags:write',
    summary: 'Creates a tag.',
    body: z.strictObject({ program_id, name, color: color.default('#808080') }),
    reply: tags.schema,
    status: 201,
    errors: ['resource_already_exists'],
    async run({ tx, body }) {
      await programs.get(tx, body.program_id, { param: 'program_id' });
      const tag = await tags.insert(tx, { ...body, id: newId('tag') }, sql`on conflict do nothing`);
      if (!tag) throw nameTaken(body.name, await tagNamed(tx, body.program_id, body.name));
      return tag;
    },
  }),
  operation({
    name: 'tags.update',
    method: 'PATCH',
    path: '/v1/tags/{id}',
    scope: 'tags:write',
    summary: 'Updates the name or the color of a tag.',
    params: idParams,
    body: z.strictObject({ name, color }).partial(),
    reply: tags.schema,
    errors: ['resource_already_exists'],
    async run({ tx, params, body }) {
      const tag = await tags.get(tx, params.id, { lock: true });
      const { name = tag.name } = body;
      const existing = await tagNamed(tx, tag.program_id, name);
      if (existing && existing.id !== tag.id) throw nameTaken(name, existing);
      return tags.update(tx, params.id, body);
    },
  }),
  operation({
    name: 'tags.delete',
    method: 'DELETE',
    path: '/v1/tags/{id}',
    scope: 'tags:write',
    summary: 'Deletes a tag and removes it from all partners.',
    doc: 'Emits `affiliate.updated` for each partner who had it. Beyond some hundred partners, a worker removes it from the others: until then they still have it, by id.',
    params: idParams,
    reply: DeletedMarker,
    async run({ tx, params }) {
      await tags.get(tx, params.id, { lock: true });
      if ((await removeTag(tx, params.id, most_at_once)) >= most_at_once) {
        await tags.update(tx, params.id, { deleted_at: tx.now });
        const { organization_id, request_id } = tx;
        const job_key = `delete_tag:${params.id}`;
        tx.enqueue('program/delete_tag', { organization_id, request_id, id: params.id }, { job_key });
      }
      return { id: params.id, object: 'tag', deleted: true as const };
    },
  }),
];

/**
 * Removes a tag from its partners, at most `most` of them, with `affiliate.updated` for each that is not deleted, and deletes the tag outright
 * once nobody has it.
 * @returns how many had it; `most` where there may be more
 */
export async function removeTag(tx: Tx, tag_id: string, most: number): Promise<number> {
  const removed = await tx.all<{ partner_id: string }>(sql`
    delete from program.partner_tag t
    where ${tenant(tx)} and t.tag_id = ${tag_id} and t.partner_id = any(array(
      select x.partner_id from program.partner_tag x
      where x.organization_id = ${tx.organization_id} and x.tag_id = ${tag_id}
      order by x.partner_id
      limit ${most}))
    returning t.partner_id`);
  const partners = await tx.all<{ partner_id: string; program_id: string; status: string; reason: string | null }>(sql`
    with changed as (
      update program.partner t set updated_at = ${tx.now}::timestamptz
      where ${tenant(tx)} and t.id = any(${removed.map(({ partner_id }) => partner_id)}) and t.deleted_at is null
      returning t.id as partner_id, t.program_id, t.status, t.suspension_reason as reason
    )
    select c.partner_id, c.program_id, c.status, c.reason from changed c order by c.partner_id`);
  for (const partner of partners) tx.emit(event('affiliate.updated', partner));
  if (removed.length < most) await tags.deleteOutright(tx, tag_id);
  return removed.length;
}

/** Names are unique in the program, letter case ignored. */
const tagNamed = (tx: Tx, program_id: string, name: string): Promise<Tag | undefined> =>
  tags.find(tx, sql`${tenant(tx)} and t.program_id = ${program_id} and t.name_key = lower(${name})`);

const nameTaken = (name: string, existing: Tag | undefined): Problem =>
  alreadyExists('name', `A tag named '${name}' already exists in this program.`, existing);

/**
 * Replaces a partner's tags.
 * @returns whether they changed
 * @throws Problem resource_not_found when a tag does not belong to the partner's program
 */
export async function replaceTags(
  tx: Tx,
  partner: { id: string; program_id: string },
  tag_ids: string[],
): Promise<boolean> {
  const existing = await tx.all<{ id: string }>(
    sql`select t.id from ${tags.from} where ${tenant(tx)} and t.program_id = ${partner.program_id} and t.id = any(${tag_ids}) and ${tags.alive}`,
  );
  const missing = tag_ids.find((tag_id) => !existing.some((tag) => tag.id === tag_id));
  if (missing !== undefined) {
    throw new Problem('resource_not_found', `No tag with the id '${missing}' in this program.`, { param: 'tag_ids' });
  }
  const removed = await tx.all(sql`
    delete from program.partner_tag t
    where ${tenant(tx)} and t.partner_id = ${partner.id} and not t.tag_id = any(${tag_ids})
    returning t.tag_id`);
  const added = await tx.all(sql`
    insert into program.partner_tag (organization_id, partner_id, tag_id)
    select ${tx.organization_id}, ${partner.id}, tag_id from unnest(${tag_ids}::text[]) as tag_id
    on conflict do nothing
    returning tag_id`);
  return removed.length + added.length > 0;
}

/** The ids of the tags of partners: of those who have any. */
export async function tagsOf(tx: Tx, partner_ids: string[]): Promise<Map<string, string[]>> {
  const rows = await tx.all<{ partner_id: string; tag_ids: string[] }>(sql`
    select t.partner_id, array_agg(t.tag_id order by t.tag_id) as tag_ids
    from program.partner_tag t where ${tenant(tx)} and t.partner_id = any(${partner_ids}) group by t.partner_id`);
  return new Map(rows.map(({ partner_id, tag_ids }) => [partner_id, tag_ids]));
}
