import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { changesOf } from '../../core/postgres/write.ts';
import { DeletedMarker, idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { alreadyExists, type Problem } from '../../core/values/problem.ts';
import { event } from '../events/catalogue.ts';
import { groups, groupToJoin } from '../partners/group.ts';
import { partnerOf, partners } from '../partners/partner.ts';
import { programs } from '../programs/program.ts';
import { countersOf, rowsOf, totalOf } from '../programs/tally.ts';

export const coupons = resource({
  object: 'coupon',
  plural: 'coupons',
  table: 'program.coupon',
  unique: { coupon_code_unique: 'code', coupon_external_id_unique: 'external_id' },
  total: totalOf('coupon'),
  doc: "A code of the processor that brings a sale to a partner. Sales are matched on `external_id` alone, never on the code's text.",
  soft_delete: true,
  relations: { partner: partners, group: groups },
  fields: {
    id: id('cpn'),
    object: objectName('coupon'),
    program_id: id('prg'),
    partner_id: id('part').nullable().describe('Whom it brings sales to. Null: nobody yet, and it attributes nothing.'),
    group_id: id('grp').nullable().describe('The group of partners that it is meant for. Null: none.'),
    code: text.describe('What customers type. Unique in the program, letter case ignored.'),
    external_id: text.nullable().describe("The processor's promotion id: the only thing that a sale is matched on."),
    active: z.boolean().describe('False: it is switched off, and attributes nothing.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
  stats: {
    fields: { customers: z.int().describe('Customers whom it brought to its partner.') },
    load: (tx, rows) => countersOf(tx, rows, { customers: rowsOf('customer') }),
  },
});

export type Coupon = z.infer<typeof coupons.record>;

const external_id = text.min(1).max(255);

export const couponOperations: Operation[] = [
  ...readOperations({ resource: coupons, within: programs, by: ['partner_id', 'group_id'] }),
  operation({
    name: 'coupons.create',
    method: 'POST',
    path: '/v1/coupons',
    scope: 'coupons:write',
    summary: 'Registers a coupon.',
    body: z.strictObject({
      program_id: id('prg'),
      code: text.min(1).max(64),
      partner_id: id('part').optional(),
      group_id: id('grp').optional(),
      external_id: external_id.optional(),
    }),
    reply: coupons.schema,
    status: 201,
    errors: ['resource_already_exists'],
    async run({ tx, body }) {
      await programs.get(tx, body.program_id, { param: 'program_id' });
      if (body.partner_id !== undefined) await partnerOf(tx, { id: body.program_id }, body.partner_id);
      if (body.group_id !== undefined) await groupToJoin(tx, body.program_id, body.group_id);
      const made = await coupons.insert(tx, { ...body, id: newId('cpn') }, sql`on conflict do nothing`);
      if (!made) throw await taken(tx, body);
      tell(tx, 'affiliate_coupon.created', made);
      return made;
    },
  }),
  operation({
    name: 'coupons.update',
    method: 'PATCH',
    path: '/v1/coupons/{id}',
    scope: 'coupons:write',
    summary: "Changes a coupon's partner or its id at the processor.",
    doc: 'Attaching a partner tells `affiliate_coupon.created`, taking the partner away `affiliate_coupon.deleted`.',
    params: idParams,
    body: z.strictObject({ external_id: external_id.nullable(), partner_id: id('part').nullable() }).partial(),
    reply: coupons.schema,
    errors: ['resource_already_exists'],
    async run({ tx, params, body }) {
      const before = await coupons.get(tx, params.id, { lock: true });
      if (typeof body.partner_id === 'string') await partnerOf(tx, { id: before.program_id }, body.partner_id);
      if (body.external_id) await refuseTakenId(tx, before, body.external_id);
      const after = await coupons.update(tx, before.id, body);
      tellChange(tx, before, after);
      return after;
    },
  }),
  switchOperation('activate', true, 'Switches a coupon on.'),
  switchOperation('deactivate', false, 'Switches a coupon off: purchases with it no longer attribute.'),
  operation({
    name: 'coupons.delete',
    method: 'DELETE',
    path: '/v1/coupons/{id}',
    scope: 'coupons:write',
    summary: 'Removes a coupon. Customers whom it brought stay with their partner.',
    params: idParams,
    reply: DeletedMarker,
    async run({ tx, params }) {
      const before = await coupons.get(tx, params.id, { lock: true });
      await coupons.update(tx, before.id, { deleted_at: tx.now });
      tellDeleted(tx, before);
      return { id: before.id, object: 'coupon', deleted: true as const };
    },
  }),
];

function switchOperation(verb: 'activate' | 'deactivate', active: boolean, summary: string): Operation {
  return operation({
    name: `coupons.${verb}`,
    method: 'POST',
    path: `/v1/coupons/{id}/${verb}`,
    scope: 'coupons:write',
    summary,
    params: idParams,
    reply: coupons.schema,
    async run({ tx, params }) {
      const before = await coupons.get(tx, params.id, { lock: true });
      if (before.active === active) return before;
      const after = await coupons.update(tx, before.id, { active });
      tell(tx, `affiliate_coupon.${verb}d`, after);
      return after;
    },
  });
}

type Told = 'created' | 'updated' | 'activated' | 'deactivated';

/** `affiliate_coupon.*` events are told of coupons that have a partner. */
function tell(
  tx: Tx,
  type: `affiliate_coupon.${Told}`,
  { id: coupon_id, program_id, partner_id, code, active }: Coupon,
): void {
  if (partner_id !== null) tx.emit(event(type, program_id, { coupon_id, partner_id, code, active }));
}

function tellDeleted(tx: Tx, { id: coupon_id, program_id, partner_id }: Coupon): void {
  if (partner_id !== null) tx.emit(event('affiliate_coupon.deleted', program_id, { coupon_id, partner_id }));
}

function tellChange(tx: Tx, before: Coupon, after: Coupon): void {
  if (before.partner_id === null) tell(tx, 'affiliate_coupon.created', after);
  else if (after.partner_id === null) tellDeleted(tx, before);
  else if (changesOf(before, after).length > 0) tell(tx, 'affiliate_coupon.updated', after);
}

async function refuseTakenId(tx: Tx, { id: own_id, program_id }: Coupon, wanted: string): Promise<void> {
  const others = sql`${tenant(tx)} and t.program_id = ${program_id} and t.id <> ${own_id}`;
  const existing = await coupons.find(tx, sql`${others} and t.external_id = ${wanted}`);
  if (existing) throw alreadyExists('external_id', 'A coupon with this external_id exists in this program.', existing);
}

/** The code, or the id at the processor, is another coupon's. */
async function taken(
  tx: Tx,
  wanted: { program_id: string; code: string; external_id?: string | undefined },
): Promise<Problem> {
  const { program_id, code, external_id: wanted_id = null } = wanted;
  const existing = await coupons.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program_id} and (t.code_key = lower(${code}) or t.external_id = ${wanted_id})`,
  );
  const param = wanted_id !== null && existing?.external_id === wanted_id ? 'external_id' : 'code';
  return alreadyExists(param, `A coupon with this ${param} exists in this program.`, existing);
}
