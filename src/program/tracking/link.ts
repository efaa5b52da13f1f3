import { randomInt } from 'node:crypto';
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { changesOf } from '../../core/postgres/write.ts';
import { DeletedMarker, idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import { id, objectName, text, timestamp, url } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { alreadyExists, notFound, type Problem } from '../../core/values/problem.ts';
import { event } from '../events/catalogue.ts';
import { partners } from '../partners/partner.ts';
import { programs } from '../programs/program.ts';
import { countersOf, rowsOf, totalOf } from '../programs/tally.ts';
import { deleteLinks } from './link_delete.ts';

const counters = { clicks: rowsOf('click'), referrals: rowsOf('referral'), customers: rowsOf('customer') };

export const links = resource({
  object: 'link',
  plural: 'links',
  table: 'program.link',
  unique: { link_value_unique: 'value', link_short_slug_unique: 'short_slug' },
  total: totalOf('link'),
  doc: "A partner's address of a page of yours, with the tracking parameter applied.",
  soft_delete: true,
  relations: { partner: partners },
  fields: {
    id: id('lnk'),
    object: objectName('link'),
    partner_id: id('part'),
    param: text.describe('The query parameter that carries the value, as `ref` in `?ref=ada`.'),
    value: text.describe('What the parameter carries. Unique in the program together with `param`.'),
    destination_url: text.describe('The page that the link leads to.'),
    url: text.describe('The destination with the tracking parameter applied.'),
    short_url: text
      .nullable()
      .describe(
        'A short address that records the click by itself and leads to `url`: with the tracking parameter, and no click id.',
      ),
    short_slug: text
      .nullable()
      .describe(
        'The end of the short address: 3 to 64 letters, digits, hyphens or underscores, unique over all programs.',
      ),
    short_domain: text.nullable().describe('The host of the short address.'),
    label: text.nullable().describe('What you call the link. Null: nothing.'),
    rate_override: z
      .json()
      .describe(
        'What sales by this link earn, whatever the rules say: `{rate_type, rate_value}`. Null: the rules decide.',
      ),
    created_at: timestamp,
    updated_at: timestamp,
  },
  stats: {
    fields: {
      clicks: z.int().describe('Clicks on the link.'),
      referrals: z.int().describe('Visitors whom it brought.'),
      customers: z.int().describe('Customers whom it brought.'),
    },
    load: (tx, rows) => countersOf(tx, rows, counters),
  },
});

export type Link = z.infer<typeof links.record>;

const short_slug = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{2,63}$/, 'must be 3 to 64 letters, digits, hyphens or underscores');
/** Of a rule, and of a link that has its own. */
export const rate_units = "`percent`: basis points (2000 = 20 %). `fixed`: minor units of the program's currency.";
const rateOverride = z
  .strictObject({
    rate_type: z.enum(['percent', 'fixed']).describe('As of a rule.'),
    rate_value: z.int().min(0).describe(rate_units),
  })
  .nullable()
  .describe('What sales by this link earn, whatever the rules say. Null: the rules decide.');

export const linkOperations: Operation[] = [
  ...readOperations({ resource: links, within: programs, by: ['partner_id'] }),
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
      rate_override: rateOverride.optional(),
    }),
    reply: links.schema,
    status: 201,
    errors: ['resource_already_exists'],
    async run({ tx, body, services }) {
      const [of, owner] = await Promise.all([
        programs.get(tx, body.program_id, { param: 'program_id' }),
        partners.get(tx, body.partner_id, { param: 'partner_id', lock: 'share' }),
      ]);
      if (owner.program_id !== of.id) throw notFound('partner', owner.id, 'partner_id');
      return createLink(tx, {
        ...body,
        ...shortAddress(of.custom_domain, services.base_url, newSlug()),
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
    summary: "Changes a link's destination, label, short slug or rate.",
    params: idParams,
    body: z
      .strictObject({ destination_url: url, label: text.max(200).nullable(), short_slug, rate_override: rateOverride })
      .partial(),
    reply: links.schema,
    errors: ['resource_already_exists'],
    async run({ tx, params, body }) {
      const before = await links.get(tx, params.id, { lock: true });
      const { destination_url = before.destination_url } = body;
      if (body.short_slug !== undefined) await refuseTakenSlug(tx, before, body.short_slug);
      const after = await links.update(tx, before.id, {
        ...body,
        ...(body.short_slug === undefined ? {} : renamed(before, body.short_slug)),
        url: trackedUrl(destination_url, before.param, before.value),
      });
      if (!changesOf(before, after).some((field) => told_of.includes(field))) return after;
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
      await links.get(tx, params.id, { lock: true });
      await deleteLinks(tx, sql`t.id = ${params.id}`);
      return { id: params.id, object: 'link', deleted: true as const };
    },
  }),
];

/** "Destination, label or short slug changed." */
const told_of: string[] = ['destination_url', 'label', 'short_slug'];

/** Where the link's short form is answered: the program's own domain, else the service's. */
function shortAddress(domain: string | null, base_url: string, slug: string) {
  const origin = domain === null || base_url.endsWith(`//${domain}`) ? base_url : `https://${domain}`;
  return { short_slug: slug, short_domain: new URL(origin).host, short_url: `${origin}/r/${slug}` };
}

/** Only the end of a short address changes: it stays where it was handed out. */
const renamed = ({ short_url }: Link, slug: string) => ({
  short_slug: slug,
  short_url: short_url?.replace(/[^/]+$/, slug),
});

/** Eight characters of base 62: slugs are unique over all tenants. */
const newSlug = (): string => {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
  return Array.from({ length: 8 }, () => alphabet[randomInt(alphabet.length)]).join('');
};

/** A link's record does not show its program. */
const programOf = (tx: Tx, link_id: string): Promise<{ program_id: string }> =>
  tx.one(sql`select t.program_id from ${links.from} where ${tenant(tx)} and t.id = ${link_id}`);

interface NewLink {
  program_id: string;
  partner_id: string;
  destination_url: string;
  param: string;
  value: string;
  label?: string | undefined;
  rate_override?: z.infer<typeof rateOverride> | undefined;
  short_slug: string;
  short_domain: string;
  short_url: string;
}

async function createLink(tx: Tx, fields: NewLink): Promise<Link> {
  const { program_id, partner_id, param, value, destination_url } = fields;
  const tracked = trackedUrl(destination_url, param, value);
  const made = await links.insert(tx, { ...fields, id: newId('lnk'), url: tracked }, sql`on conflict do nothing`);
  if (!made) throw await taken(tx, fields);
  const { id: link_id } = made;
  tx.emit(
    event('affiliate_link.created', program_id, { link_id, partner_id, url: tracked, param, value, destination_url }),
  );
  return made;
}

async function taken(tx: Tx, { program_id, param, value }: NewLink): Promise<Problem> {
  const existing = await links.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program_id} and t.param = ${param} and t.value = ${value}`,
  );
  return alreadyExists(
    'value',
    `A link with ${param}=${value} exists in this program. Choose another value.`,
    existing,
  );
}

/** Another organization's link that has the slug is not found here, and not shown: the constraint refuses it. */
async function refuseTakenSlug(tx: Tx, { id: own_id }: Link, slug: string): Promise<void> {
  const existing = await links.find(tx, sql`${tenant(tx)} and t.short_slug = ${slug} and t.id <> ${own_id}`);
  if (existing) throw alreadyExists('short_slug', `The short slug '${slug}' is taken. Choose another one.`, existing);
}

/**
 * The destination with the tracking parameter applied. Not a byte of what else its query and its fragment hold is changed: somebody may
 * have signed them. A parameter of this name is replaced where it stands.
 */
export function trackedUrl(destination: string, param: string, value: string): string {
  const [, page, query = '', fragment = ''] = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(destination) as RegExpExecArray;
  const tracking = new URLSearchParams([[param, value]]).toString();
  const parts = query.slice(1).split('&');
  const at = parts.findIndex((part) => isNamed(part, param));
  const kept = parts.filter((part, nth) => nth === at || !isNamed(part, param));
  if (at >= 0) kept[at] = tracking;
  else if (kept.at(-1) === '') kept[kept.length - 1] = tracking;
  else kept.push(tracking);
  return `${page}?${kept.join('&')}${fragment}`;
}

const isNamed = (part: string, param: string): boolean => new URLSearchParams(part).has(param);
