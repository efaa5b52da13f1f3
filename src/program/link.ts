import sql from 'sql-template-tag';
import { z } from 'zod';
import { id, objectName, text, timestamp, url } from '../core/fields.ts';
import { newId } from '../core/id.ts';
import { DeletedMarker, idParams, type Operation, operation, readOperations } from '../core/operation.ts';
import { alreadyExists, notFound, type Problem } from '../core/problem.ts';
import { type Row, resource, tenant } from '../core/resource.ts';
import type { Tx } from '../core/transaction.ts';
import { event } from './event.ts';
import { partner } from './partner.ts';
import { program } from './program.ts';

export const link = resource({
  object: 'link',
  plural: 'links',
  table: 'program.link',
  doc: "A partner's address of a page of yours, with the tracking parameter applied.",
  soft_delete: true,
  relations: { partner },
  fields: {
    id: id('lnk'),
    object: objectName('link'),
    partner_id: id('part'),
    param: text,
    value: text,
    destination_url: text,
    url: text.describe('The destination with the tracking parameter applied.'),
    short_url: text.nullable(),
    short_slug: text.nullable(),
    short_domain: text.nullable(),
    label: text.nullable(),
    rate_override: z.json().describe('`{rate_type, rate_value}`: wins over every rule. Null: none.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
  stats: { fields: { clicks: z.int(), referrals: z.int(), customers: z.int() }, load: linkStats },
});

export type Link = z.infer<typeof link.record>;

export const linkOperations: Operation[] = [
  ...readOperations({ of: link, within: program, by: ['partner_id'] }),
  operation({
    name: 'links.create',
    method: 'POST',
    path: '/v1/links',
    scope: 'links:write',
    summary: 'Creates a link.',
    body: z.strictObject({
      program_id: id('prg'),
      partner_id: id('part'),
      destination_url: url,
      value: text.min(2).max(64).optional().describe("The partner's handle when left out."),
      param: text.min(1).max(32).optional().describe("The first of the program's `url_params` when left out."),
      label: text.max(200).optional(),
    }),
    reply: link.schema,
    status: 201,
    async run({ tx, body }) {
      const [of, owner] = await Promise.all([
        program.get(tx, body.program_id, { param: 'program_id' }),
        partner.get(tx, body.partner_id, { param: 'partner_id' }),
      ]);
      if (owner.program_id !== of.id) throw notFound('partner', owner.id, 'partner_id');
      return createLink(tx, {
        ...body,
        value: body.value ?? owner.handle,
        param: body.param ?? of.url_params[0] ?? 'ref',
      });
    },
  }),
  operation({
    name: 'links.update',
    method: 'PATCH',
    path: '/v1/links/{id}',
    scope: 'links:write',
    summary: "Changes a link's destination or label.",
    params: idParams,
    body: z.strictObject({ destination_url: url, label: text.max(200).nullable() }).partial(),
    reply: link.schema,
    async run({ tx, params, body }) {
      const before = await link.get(tx, params.id, { lock: true });
      const { destination_url = before.destination_url } = body;
      const after = await link.update(tx, before.id, {
        ...body,
        url: trackedUrl(destination_url, before.param, before.value),
      });
      const { program_id } = await programOf(tx, after.id);
      tx.emit(
        event('affiliate_link.updated', program_id, {
          link_id: after.id,
          partner_id: after.partner_id,
          url: after.url,
          destination_url,
        }),
      );
      return after;
    },
  }),
  operation({
    name: 'links.delete',
    method: 'DELETE',
    path: '/v1/links/{id}',
    scope: 'links:write',
    summary: 'Deletes a link: clicks on it no longer attribute.',
    params: idParams,
    reply: DeletedMarker,
    async run({ tx, params }) {
      const { id: link_id, partner_id } = await link.get(tx, params.id, { lock: true });
      await link.update(tx, link_id, { deleted_at: tx.now });
      const { program_id } = await programOf(tx, link_id);
      tx.emit(event('affiliate_link.deleted', program_id, { link_id, partner_id }));
      return { id: link_id, object: 'link', deleted: true as const };
    },
  }),
];

/** A link's record does not show its program. */
const programOf = (tx: Tx, link_id: string): Promise<{ program_id: string }> =>
  tx.one(sql`select t.program_id from ${link.from} where ${tenant(tx)} and t.id = ${link_id}`);

interface NewLink {
  program_id: string;
  partner_id: string;
  destination_url: string;
  param: string;
  value: string;
  label?: string | undefined;
}

async function createLink(tx: Tx, fields: NewLink): Promise<Link> {
  const { program_id, partner_id, param, value, destination_url } = fields;
  const tracked = trackedUrl(destination_url, param, value);
  const made = await link.insert(tx, { ...fields, id: newId('lnk'), url: tracked }, sql`on conflict do nothing`);
  if (!made) throw await taken(tx, fields);
  const { id: link_id } = made;
  tx.emit(
    event('affiliate_link.created', program_id, { link_id, partner_id, url: tracked, param, value, destination_url }),
  );
  return made;
}

async function taken(tx: Tx, { program_id, param, value }: NewLink): Promise<Problem> {
  const existing = await link.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program_id} and t.param = ${param} and t.value = ${value}`,
  );
  return alreadyExists(
    'value',
    `A link with ${param}=${value} exists in this program. Choose another value.`,
    existing,
  );
}

/** The destination with the tracking parameter applied: what else its query and fragment hold stays as it was. */
export function trackedUrl(destination: string, param: string, value: string): string {
  const tracked = new URL(destination);
  tracked.searchParams.set(param, value);
  return tracked.href;
}

async function linkStats(tx: Tx, rows: Row[]): Promise<Map<string, object>> {
  const stats = await tx.all<{ id: string }>(sql`
    select t.id,
      (select count(*) from program.click x where x.organization_id = t.organization_id and x.link_id = t.id) as clicks,
      (select count(*) from program.referral x where x.organization_id = t.organization_id and x.link_id = t.id and x.deleted_at is null) as referrals,
      (select count(*) from program.customer x where x.organization_id = t.organization_id and x.link_id = t.id) as customers
    from program.link t
    where ${tenant(tx)} and t.id = any(${rows.map((row) => row.id)})`);
  return new Map(stats.map(({ id, ...counters }) => [id, counters]));
}
