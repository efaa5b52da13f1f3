import sql, { raw } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { DeletedMarker, idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import { id, objectName, requireState, text, timestamp, url } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { notFound } from '../../core/values/problem.ts';
import { event } from '../events/catalogue.ts';
import { programs, slugOf } from '../programs/program.ts';
import { countersOf, rowsOf, totalOf } from '../programs/tally.ts';

export const groups = resource({
  object: 'group',
  plural: 'groups',
  table: 'program.partner_group',
  unique: { partner_group_slug_unique: 'slug', partner_group_one_default: null },
  total: totalOf('partner_group'),
  hard_delete: 'grp',
  doc: 'Partners who are treated alike. Every program has a default group.',
  fields: {
    id: id('grp'),
    object: objectName('group'),
    program_id: id('prg'),
    name: text.describe('What you call the group.'),
    slug: text.describe('Made of the name, unique in the program. Fixed at creation.'),
    description: text.nullable().describe('What the group is for. Null: not said.'),
    landing_url: text
      .nullable()
      .describe('The page where those land who want to join this group. Null: none of its own.'),
    is_private: z.boolean().describe('True: partners see and join it by invitation alone.'),
    is_default: z
      .boolean()
      .describe(
        'True of one group of the program: the one that partners join where none is named. Only `true` can be sent, which takes it from the other.',
      ),
    created_at: timestamp,
    updated_at: timestamp,
  },
  stats: {
    fields: { partners: z.int().describe('Partners in the group, of any status.') },
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
      program_id: id('prg'),
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
    summary: 'Changes a group, or makes it the default.',
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
    summary: "Deletes a group; its partners move to the program's default group.",
    doc: 'The default group itself cannot be deleted: make another one the default first.',
    params: idParams,
    reply: DeletedMarker,
    errors: ['invalid_state_transition'],
    async run({ tx, params }) {
      const { program_id } = await groups.get(tx, params.id);
      await programs.get(tx, program_id, { lock: true });
      const { is_default } = await groups.get(tx, params.id);
      requireState(!is_default, 'The default group cannot be deleted: make another group the default first.');
      await closeToJoiners(tx, params.id);
      await emptyInto(tx, params.id, await groupToJoin(tx, program_id, undefined));
      await tx.all(sql`delete from program.partner_group as t where ${tenant(tx)} and t.id = ${params.id}`);
      return { id: params.id, object: 'group', deleted: true as const };
    },
  }),
];

/** Waits for those who are about to join; who comes later finds no group. */
const closeToJoiners = (tx: Tx, group_id: string) =>
  tx.all(sql`select 1 from ${groups.from} where ${tenant(tx)} and t.id = ${group_id} for update`);

/** Moves everything that hangs on a group to another one. Its partners are told of as updated, unless they are deleted. */
async function emptyInto(tx: Tx, from: string, to: string): Promise<void> {
  const moved = await tx.all<{ id: string; program_id: string; status: string; suspension_reason: string | null }>(sql`
    with moved as (
      update program.partner t set group_id = ${to}, updated_at = ${tx.now}::timestamptz
      where ${tenant(tx)} and t.group_id = ${from}
      returning t.id, t.program_id, t.status, t.suspension_reason, t.deleted_at
    )
    select id, program_id, status, suspension_reason from moved where deleted_at is null order by id`);
  for (const { id: partner_id, program_id, status, suspension_reason: reason } of moved) {
    tx.emit(event('affiliate.updated', program_id, { partner_id, status, reason }));
  }
  for (const table of ['program.coupon', 'program.application']) {
    await tx.all(sql`
      update ${raw(table)} t set group_id = ${to}, updated_at = ${tx.now}::timestamptz
      where ${tenant(tx)} and t.group_id = ${from}`);
  }
}

/** A slug of the name, with `-2`, `-3` … behind it when taken. Under the program's row lock. */
async function freeSlug(tx: Tx, program_id: string, of: string): Promise<string> {
  const base = slugOf(of) || 'group';
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

/** The group that a new partner joins: the one named, which must be the program's, or the program's default. */
export async function groupToJoin(tx: Tx, program_id: string, group_id: string | undefined): Promise<string> {
  const wanted = group_id === undefined ? sql`t.is_default` : sql`t.id = ${group_id}`;
  const found = await groups.find(tx, sql`${tenant(tx)} and t.program_id = ${program_id} and ${wanted}`);
  if (!found) throw notFound('group', group_id ?? 'default', 'group_id');
  return found.id;
}
