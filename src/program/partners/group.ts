import sql, { raw, type Sql } from 'sql-template-tag';
import { z } from 'zod';
import { most_at_once } from '../../core/jobs/task.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { DeletedMarker } from '../../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import { id, objectName, requireState, text, timestamp, url } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { notInProgram } from '../../core/values/problem.ts';
import { event } from '../events/event.ts';
import { program_id } from '../events/fields.ts';
import { programs } from '../programs/program.ts';
import { slugOf } from '../programs/slug.ts';
import { countersOf, rowsOf } from '../programs/tally.ts';

export const groups = resource({
  object: 'group',
  plural: 'groups',
  table: 'program.partner_group',
  unique: { partner_group_slug_unique: 'slug', partner_group_one_default: null },
  soft_delete: true,
  hard_delete: 'program_id',
  doc: 'A set of partners that share commission rules and coupons. Every program has a default group.',
  fields: {
    id: id('grp'),
    object: objectName('group'),
    program_id,
    name: text.describe('The name of the group.'),
    slug: text.describe('An identifier derived from the name at creation. Unique in the program; it does not change.'),
    description: text.nullable().describe('A description of the group. Null if not provided.'),
    landing_url: text.nullable().describe('The landing page for applicants to this group. Null if it has none.'),
    is_private: z.boolean().describe('Whether partners can see and join the group by invitation only.'),
    is_default: z
      .boolean()
      .describe(
        'Whether partners join this group when no group is specified. Exactly one group of a program is the default. In an update, only `true` is accepted; the previous default group loses the flag.',
      ),
    created_at: timestamp,
    updated_at: timestamp,
  },
  stats: {
    fields: { partners: z.int().describe('Partners in the group, with any status.') },
    load: (tx, rows) => countersOf(tx, rows, { partners: rowsOf('partner') }),
  },
});

type Group = z.infer<typeof groups.record>;

const name = text.min(1).max(100);
const landing_url = url.nullable();
const description = text.max(2000).nullable();

export const groupOperations: Operation[] = [
  ...readOperations({ resource: groups, within: programs }),
  operation({
    name: 'groups.create',
    method: 'POST',
    path: '/v1/groups',
    scope: 'groups:write',
    summary: 'Creates a group.',
    body: z.strictObject({
      program_id,
      name,
      description: description.optional(),
      landing_url: url.optional(),
      is_private: z.boolean().default(false),
    }),
    reply: groups.schema,
    status: 201,
    async run({ tx, body }) {
      await programs.get(tx, body.program_id, { param: 'program_id', lock: true });
      const slug = await freeSlug(tx, body.program_id, body.name);
      return (await groups.insert(tx, { ...body, id: newId('grp'), slug })) as Group;
    },
  }),
  operation({
    name: 'groups.update',
    method: 'PATCH',
    path: '/v1/groups/{id}',
    scope: 'groups:write',
    summary: 'Updates a group, or makes it the default group.',
    params: idParams,
    body: z
      .strictObject({ name, description, landing_url, is_private: z.boolean(), is_default: z.literal(true) })
      .partial(),
    reply: groups.schema,
    async run({ tx, params, body }) {
      const { program_id } = await groups.get(tx, params.id);
      await programs.get(tx, program_id, { lock: true });
      if (body.is_default) {
        await tx.all(sql`
          update program.partner_group t set is_default = false, updated_at = ${tx.now}::timestamptz
          where ${tenant(tx)} and t.program_id = ${program_id} and t.is_default and t.id <> ${params.id}`);
      }
      return groups.update(tx, params.id, body);
    },
  }),
  operation({
    name: 'groups.delete',
    method: 'DELETE',
    path: '/v1/groups/{id}',
    scope: 'groups:write',
    summary: "Deletes a group and moves its partners to the program's default group.",
    doc: 'The default group cannot be deleted. Make another group the default first. Beyond some hundred partners, a worker moves the others: until then they are still in the group, by id.',
    params: idParams,
    reply: DeletedMarker,
    errors: ['invalid_state_transition'],
    async run({ tx, params }) {
      const { program_id } = await groups.get(tx, params.id);
      await programs.get(tx, program_id, { lock: true });
      const { is_default } = await groups.get(tx, params.id);
      requireState(!is_default, 'The default group cannot be deleted. Make another group the default first.');
      const group = { id: params.id, program_id };
      if ((await dissolve(tx, group, most_at_once)) >= most_at_once) {
        await groups.update(tx, group.id, { deleted_at: tx.now });
        const { organization_id, request_id } = tx;
        const job_key = `delete_group:${group.id}`;
        tx.enqueue('program/delete_group', { organization_id, request_id, ...group }, { job_key });
      }
      return { id: params.id, object: 'group', deleted: true as const };
    },
  }),
];

/**
 * Moves what is in a group to the default group, at most `most` of it, and deletes the group outright once nothing is left.
 * @returns how many were moved; `most` where there may be more
 */
export async function dissolve(
  tx: Tx,
  { id, program_id }: Pick<Group, 'id' | 'program_id'>,
  most: number,
): Promise<number> {
  await programs.get(tx, program_id, { lock: true });
  await lockForDeletion(tx, id);
  const moved = await moveMembers(tx, id, await groupToJoin(tx, program_id, undefined), most);
  if (moved < most) await groups.deleteOutright(tx, id);
  return moved;
}

/** Waits for transactions that are adding a partner to the group; later ones no longer find it. */
const lockForDeletion = (tx: Tx, group_id: string) =>
  tx.all(sql`select 1 from ${groups.from} where ${tenant(tx)} and t.id = ${group_id} for update`);

/**
 * Moves partners, coupons and applications to another group, at most `most` in all. Emits `affiliate.updated` for each partner that is not
 * deleted.
 */
async function moveMembers(tx: Tx, from: string, to: string, most: number): Promise<number> {
  type Moved = { partner_id: string; program_id: string; status: string; reason: string | null; is_deleted: boolean };
  const partners = await tx.all<Moved>(sql`
    with moved as (
      update program.partner t set group_id = ${to}, updated_at = ${tx.now}::timestamptz
      where ${tenant(tx)} and t.id = any(${someOf(tx, 'program.partner', from, most)})
      returning t.id, t.program_id, t.status, t.suspension_reason, t.deleted_at
    )
    select m.id as partner_id, m.program_id, m.status, m.suspension_reason as reason, m.deleted_at is not null as is_deleted
    from moved m
    order by m.id`);
  for (const { is_deleted, ...partner } of partners) if (!is_deleted) tx.emit(event('affiliate.updated', partner));
  let left = most - partners.length;
  for (const table of ['program.coupon', 'program.application']) {
    if (left === 0) break;
    const moved = await tx.all(sql`
      update ${raw(table)} t set group_id = ${to}, updated_at = ${tx.now}::timestamptz
      where ${tenant(tx)} and t.id = any(${someOf(tx, table, from, left)})
      returning t.id`);
    left -= moved.length;
  }
  return most - left;
}

/** Ids of what is in a group. Rows are looked up by them one by one: a join would be quadratic where there are no statistics yet. */
const someOf = (tx: Tx, table: string, group_id: string, most: number): Sql => sql`array(
  select m.id from ${raw(table)} m
  where m.organization_id = ${tx.organization_id} and m.group_id = ${group_id}
  order by m.id
  limit ${most}
  for no key update)`;

/** A slug of the name, with the suffix `-2`, `-3` … if it is taken. The caller holds the program's row lock. */
async function freeSlug(tx: Tx, program_id: string, name: string): Promise<string> {
  const base = slugOf(name) || 'group';
  const { slug } = await tx.one<{ slug: string }>(sql`
    with recursive candidate (nth, slug) as (
      values (1, ${base}::text)
      union all
      select c.nth + 1, ${base} || '-' || (c.nth + 1)
      from candidate c
      where (select true from ${groups.from} where ${tenant(tx)} and t.program_id = ${program_id} and t.slug = c.slug)
    )
    select slug from candidate order by nth desc limit 1`);
  return slug;
}

/**
 * The id of the group that a new partner joins: the given one, or else the program's default group.
 * @throws Problem resource_not_found when the group belongs to another program
 */
export async function groupToJoin(tx: Tx, program_id: string, group_id: string | undefined): Promise<string> {
  const which = group_id === undefined ? sql`t.is_default` : sql`t.id = ${group_id}`;
  const group = await groups.find(tx, sql`${tenant(tx)} and t.program_id = ${program_id} and ${which}`);
  if (!group) throw notInProgram('group', group_id ?? 'default', 'group_id');
  return group.id;
}
