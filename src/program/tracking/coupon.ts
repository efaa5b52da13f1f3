import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { changesOf } from '../../core/postgres/write.ts';
import { DeletedMarker } from '../../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { lockOf, resource, tenant } from '../../core/resource/resource.ts';
import { externalId, id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { alreadyExists, type Problem } from '../../core/values/problem.ts';
import { typedCode } from '../../core/values/typed_code.ts';
import { event } from '../events/event.ts';
import { program_id } from '../events/fields.ts';
import { groups, groupToJoin } from '../partners/group.ts';
import { type Partner, partnerOf, partners } from '../partners/partner.ts';
import { programs } from '../programs/program.ts';
import { countersOf, rowsOf, totalOf } from '../programs/tally.ts';

export const coupons = resource({
  object: 'coupon',
  plural: 'coupons',
  table: 'program.coupon',
  unique: { coupon_code_unique: 'code', coupon_external_id_unique: 'external_id' },
  total: totalOf('coupon'),
  doc: 'A coupon of your billing processor that attributes sales to a partner. Sales are matched by `external_id` only, never by the code.',
  soft_delete: true,
  relations: { partner: partners, group: groups },
  fields: {
    id: id('cpn'),
    object: objectName('coupon'),
    program_id,
    partner_id: id('part')
      .nullable()
      .describe(
        'The partner that sales with the coupon are attributed to. Null if the coupon has no partner; its sales are not attributed.',
      ),
    group_id: id('grp').nullable().describe('The group of partners that the coupon is for. Null if it has none.'),
    code: text.describe('The code that customers enter. Unique in the program; letter case is ignored.'),
    external_id: text
      .nullable()
      .describe("The processor's promotion id. Sales are matched by this id. Null if not provided."),
    active: z.boolean().describe('Whether sales with the coupon are attributed to its partner.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
  stats: {
    fields: { customers: z.int().describe('Customers attributed to the partner through the coupon.') },
    load: (tx, rows) => countersOf(tx, rows, { customers: rowsOf('customer') }),
  },
});

export type Coupon = z.infer<typeof coupons.record>;

export const couponOperations: Operation[] = [
  ...readOperations({ resource: coupons, within: programs, by: ['partner_id', 'group_id'] }),
  operation({
    name: 'coupons.update',
    method: 'PATCH',
    path: '/v1/coupons/{id}',
    scope: 'coupons:write',
    summary: "Updates a coupon's partner or external id.",
    doc: 'Adding a partner emits `affiliate_coupon.created`; removing the partner emits `affiliate_coupon.deleted`.',
    params: idParams,
    body: z.strictObject({ external_id: externalId.nullable(), partner_id: id('part').nullable() }).partial(),
    reply: coupons.schema,
    errors: ['resource_already_exists'],
    async run({ tx, params, body }) {
      const before = await coupons.get(tx, params.id, { lock: true });
      if (typeof body.partner_id === 'string') await partnerOf(tx, { id: before.program_id }, body.partner_id);
      if (body.external_id) await refuseTakenId(tx, before, body.external_id);
      const after = await coupons.update(tx, before.id, body);
      emitChange(tx, before, after);
      return after;
    },
  }),
  switchOperation('activate', true, 'Activates a coupon. Sales from now on are attributed to its partner.'),
  switchOperation(
    'deactivate',
    false,
    'Deactivates a coupon. Sales from now on are no longer attributed: what happened before is, whenever you send it.',
  ),
  operation({
    name: 'coupons.delete',
    method: 'DELETE',
    path: '/v1/coupons/{id}',
    scope: 'coupons:write',
    summary: 'Deletes a coupon. Customers attributed through it stay with their partner.',
    params: idParams,
    reply: DeletedMarker,
    async run({ tx, params }) {
      const coupon = await coupons.get(tx, params.id, { lock: true });
      await coupons.update(tx, coupon.id, { deleted_at: tx.now });
      emitFor(tx, 'affiliate_coupon.deleted', coupon);
      return { id: coupon.id, object: 'coupon', deleted: true as const };
    },
  }),
];

/** A coupon as callers send it. */
export const NewCoupon = z.strictObject({
  program_id,
  code: typedCode,
  partner_id: id('part').optional(),
  group_id: id('grp').optional(),
  external_id: externalId.optional(),
});
export type NewCoupon = z.infer<typeof NewCoupon>;

/** @throws Problem where its program, partner or group does not exist */
export async function requireOwners(tx: Tx, { program_id, partner_id, group_id }: NewCoupon): Promise<void> {
  await programs.get(tx, program_id, { param: 'program_id' });
  if (partner_id !== undefined) await partnerOf(tx, { id: program_id }, partner_id);
  if (group_id !== undefined) await groupToJoin(tx, program_id, group_id);
}

/** @throws Problem resource_already_exists */
export async function createCoupon(tx: Tx, given: NewCoupon): Promise<Coupon> {
  await requireOwners(tx, given);
  const coupon = await coupons.insert(tx, { ...given, id: newId('cpn') }, sql`on conflict do nothing`);
  if (!coupon) throw takenBy(given, await findTaken(tx, given));
  emitFor(tx, 'affiliate_coupon.created', coupon);
  return coupon;
}

/**
 * Gives a partner the coupon with a code, active: a new one, one that has no partner or a deleted one, or the one that they have.
 * @returns undefined where it belongs to another partner
 */
export async function giveCoupon(
  tx: Tx,
  { id: partner_id, program_id }: Pick<Partner, 'id' | 'program_id'>,
  code: string,
): Promise<Coupon | undefined> {
  const by_code = sql`${tenant(tx)} and t.program_id = ${program_id} and t.code_key = lower(${code})`;
  const before = await coupons.find(tx, by_code, lockOf(true));
  if (!before) {
    const row = { id: newId('cpn'), program_id, partner_id, code };
    const created = await coupons.insert(tx, row, sql`on conflict do nothing`);
    // Another transaction created it in the meantime.
    if (!created) return giveCoupon(tx, { id: partner_id, program_id }, code);
    emitFor(tx, 'affiliate_coupon.created', created);
    return created;
  }
  const is_theirs = before.partner_id === partner_id;
  if (!is_theirs && (await hasPartner(tx, before))) return undefined;
  const given = await coupons.update(tx, before.id, { partner_id });
  if (!is_theirs) emitFor(tx, 'affiliate_coupon.created', given);
  return switchCoupon(tx, given, { active: true });
}

/** Returns whether the coupon's partner exists: a deleted one holds no code. */
const hasPartner = async (tx: Tx, { partner_id }: Coupon): Promise<boolean> =>
  partner_id !== null && (await partners.find(tx, sql`${tenant(tx)} and t.id = ${partner_id}`)) !== undefined;

/**
 * Switches a locked coupon on or off.
 * @param at since when. Left out: from now on, after every other time
 * @returns the coupon as it is now: a switch from before its last one changes nothing of that
 */
export async function switchCoupon(
  tx: Tx,
  before: Coupon,
  { active, at }: { active: boolean; at?: string },
): Promise<Coupon> {
  if (at === undefined && before.active === active) return before;
  const { is_last } = await tx.one<{ is_last: boolean }>(sql`
    with last as (
      select max(t.at) as at from program.coupon_switch t where ${tenant(tx)} and t.coupon_id = ${before.id}
    ), noted as (
      insert into program.coupon_switch (organization_id, coupon_id, at, active)
      select ${tx.organization_id}, ${before.id}, coalesce(${at ?? null}::timestamptz, greatest(${tx.now}::timestamptz, last.at)), ${active} from last
      on conflict (organization_id, coupon_id, at) do update set active = excluded.active
      returning at
    )
    select last.at is null or noted.at >= last.at as is_last from noted, last`);
  if (!is_last || before.active === active) return before;
  const after = await coupons.update(tx, before.id, { active });
  emitFor(tx, `affiliate_coupon.${active ? '' : 'de'}activated`, after);
  return after;
}

/** Selects whether a coupon `c` was active at a time. @param at left out: now */
export const wasActive = (at?: string | Sql): Sql => sql`coalesce((
  select s.active from program.coupon_switch s
  where s.organization_id = c.organization_id and s.coupon_id = c.id and s.at <= coalesce(${at ?? null}::timestamptz, statement_timestamp())
  order by s.at desc limit 1
), true)`;

function switchOperation(verb: 'activate' | 'deactivate', active: boolean, summary: string): Operation {
  return operation({
    name: `coupons.${verb}`,
    method: 'POST',
    path: `/v1/coupons/{id}/${verb}`,
    scope: 'coupons:write',
    summary,
    params: idParams,
    reply: coupons.schema,
    run: async ({ tx, params }) => switchCoupon(tx, await coupons.get(tx, params.id, { lock: true }), { active }),
  });
}

type CouponEvent = `affiliate_coupon.${'created' | 'updated' | 'activated' | 'deactivated' | 'deleted'}`;

/** Emits an event for a coupon that has a partner: coupons without one have no events. */
function emitFor(tx: Tx, type: CouponEvent, coupon: Coupon): void {
  const { partner_id } = coupon;
  if (partner_id !== null) tx.emit(event(type, { ...coupon, partner_id }));
}

function emitChange(tx: Tx, before: Coupon, after: Coupon): void {
  if (before.partner_id === null) emitFor(tx, 'affiliate_coupon.created', after);
  else if (after.partner_id === null) emitFor(tx, 'affiliate_coupon.deleted', before);
  else if (changesOf(before, after).length > 0) emitFor(tx, 'affiliate_coupon.updated', after);
}

async function refuseTakenId(tx: Tx, coupon: Coupon, external_id: string): Promise<void> {
  const others = sql`${tenant(tx)} and t.program_id = ${coupon.program_id} and t.id <> ${coupon.id}`;
  const existing = await coupons.find(tx, sql`${others} and t.external_id = ${external_id}`);
  if (existing) throw takenProblem('external_id', existing);
}

const takenProblem = (param: 'code' | 'external_id', existing: Coupon | undefined): Problem =>
  alreadyExists(param, `A coupon with this ${param} already exists in this program.`, existing);

/** The coupon that has the code or the external id of a new one. */
export const findTaken = (tx: Tx, { program_id, code, external_id }: NewCoupon): Promise<Coupon | undefined> =>
  coupons.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program_id} and (t.code_key = lower(${code}) or t.external_id = ${external_id ?? null})`,
  );

export const takenBy = ({ external_id }: NewCoupon, existing: Coupon | undefined): Problem =>
  takenProblem(external_id !== undefined && existing?.external_id === external_id ? 'external_id' : 'code', existing);
