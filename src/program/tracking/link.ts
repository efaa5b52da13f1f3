import { randomInt } from 'node:crypto';
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { changesOf } from '../../core/postgres/write.ts';
import { DeletedMarker } from '../../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { id, text, urlAsSent } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { alreadyExists, notInProgram, type Problem } from '../../core/values/problem.ts';
import { unmistakable } from '../../core/values/typed_code.ts';
import { event } from '../events/event.ts';

import { program_id } from '../events/fields.ts';

import { claimValue, heldHandle } from '../partners/handle.ts';

import { type Link, links } from '../partners/link.ts';
import { partners } from '../partners/partner.ts';
import { programs } from '../programs/program.ts';
import { deleteLinks } from './link_delete.ts';

const short_slug = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{2,63}$/, 'must be 3 to 64 letters, digits, hyphens or underscores');
/** The units of a rule's rate, and of a link's own rate. */
export const rate_units =
  "`percent`: basis points (2000 = 20 %), at most 1,000,000. `fixed`: minor units of the program's currency.";
/** The highest percent rate, in basis points: a hundred times the sale. */
const highest_percent = 1_000_000;
export const rate_bound = 'must be at most 1000000 basis points for a percent rate';
export function isWithinBounds({ rate_type, rate_value }: { rate_type: string; rate_value: number }): boolean {
  return rate_type !== 'percent' || rate_value <= highest_percent;
}

/** Returns a schema that constrains some fields of an object. */
const having = (properties: object) => ({ properties, additionalProperties: true });
const bounded = { rate_value: { maximum: highest_percent } };
/** The bound in JSON Schema, for the description. @param besides other fields of the object, which hold rates too */
const rateBoundSchema = (besides: object = {}) => ({
  if: { ...having({ rate_type: { const: 'percent' } }), required: ['rate_type'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: having({ ...bounded, ...besides }),
});
export const rule_bound_schema = rateBoundSchema({ tiers: { items: having(bounded) } });

const rateOverride = z
  .strictObject({
    rate_type: z.enum(['percent', 'fixed']).describe('How the rate is applied, as for a rule.'),
    rate_value: z.int().min(0).describe(rate_units),
  })
  .refine(isWithinBounds, { path: ['rate_value'], message: rate_bound })
  .meta(rateBoundSchema())
  .nullable()
  .describe(
    'The commission rate of sales through this link, which takes precedence over all rules. Null: the rules apply.',
  );

export const linkOperations: Operation[] = [
  ...readOperations({ resource: links, within: programs, by: ['partner_id'] }),
  operation({
    name: 'links.create',
    method: 'POST',
    path: '/v1/links',
    scope: 'links:write',
    summary: 'Creates a link.',
    doc: "A value is unique in the program together with its parameter; letter case is ignored. Under the program's `url_params`, a value has one partner: if it is the handle of another partner, the response is 409 with the partner under `existing`.",
    body: z.strictObject({
      program_id,
      partner_id: id('part'),
      destination_url: urlAsSent,
      value: unmistakable(2, 64).optional().describe("The default is the partner's handle."),
      param: text.min(1).max(32).optional().describe("The default is the first of the program's `url_params`."),
      label: text.max(200).optional(),
      rate_override: rateOverride.optional(),
    }),
    reply: links.schema,
    status: 201,
    errors: ['resource_already_exists'],
    async run({ tx, body, services }) {
      const [program, partner] = await Promise.all([
        programs.get(tx, body.program_id, { param: 'program_id' }),
        partners.get(tx, body.partner_id, { param: 'partner_id', lock: 'share' }),
      ]);
      if (partner.program_id !== program.id) throw notInProgram('partner', partner.id, 'partner_id');
      return createLink(tx, {
        ...body,
        ...shortAddress(program.custom_domain, services.base_url, newSlug()),
        value: body.value ?? partner.handle,
        param: body.param ?? program.url_params[0] ?? 'ref',
      });
    },
  }),
  operation({
    name: 'links.update',
    method: 'PATCH',
    path: '/v1/links/{id}',
    scope: 'links:write',
    summary: "Updates a link's destination, label, short slug or rate.",
    params: idParams,
    body: z
      .strictObject({
        destination_url: urlAsSent,
        label: text.max(200).nullable(),
        short_slug,
        rate_override: rateOverride,
      })
      .partial(),
    reply: links.schema,
    errors: ['resource_already_exists'],
    async run({ tx, params, body }) {
      const before = await links.get(tx, params.id, { lock: true });
      const { destination_url = before.destination_url, short_slug } = body;
      if (short_slug !== undefined) await refuseTakenSlug(tx, before, short_slug);
      const after = await links.update(tx, before.id, {
        ...body,
        ...(short_slug === undefined ? {} : withSlug(before, short_slug)),
        url: trackedUrl(destination_url, before.param, before.value),
      });
      if (!changesOf(before, after).some((field) => emitted_fields.includes(field))) return after;
      tx.emit(event('affiliate_link.updated', { ...after, ...(await programOf(tx, after.id)) }));
      return after;
    },
  }),
  operation({
    name: 'links.delete',
    method: 'DELETE',
    path: '/v1/links/{id}',
    scope: 'links:write',
    summary: 'Deletes a link. Clicks on it are no longer attributed.',
    params: idParams,
    reply: DeletedMarker,
    async run({ tx, params }) {
      await links.get(tx, params.id, { lock: true });
      await deleteLinks(tx, sql`t.id = ${params.id}`, 1);
      return { id: params.id, object: 'link', deleted: true as const };
    },
  }),
];

/** The fields whose change emits `affiliate_link.updated`: "destination, label or short slug changed". */
const emitted_fields: string[] = ['destination_url', 'label', 'short_slug'];

/** A link's short URL: on the program's custom domain, or else on the service's. */
function shortAddress(domain: string | null, base_url: string, slug: string) {
  const origin = domain === null || base_url.endsWith(`//${domain}`) ? base_url : `https://${domain}`;
  return { short_slug: slug, short_domain: new URL(origin).host, short_url: `${origin}/r/${slug}` };
}

/** The short URL with another slug. The host stays, even if the program's custom domain has changed since. */
const withSlug = ({ short_url }: Link, slug: string) => ({
  short_slug: slug,
  short_url: short_url && `${short_url.slice(0, short_url.lastIndexOf('/') + 1)}${slug}`,
});

/** Eight random letters and digits: slugs are unique over all organizations. */
const newSlug = (): string => {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
  return Array.from({ length: 8 }, () => alphabet[randomInt(alphabet.length)]).join('');
};

/** A link's record has no `program_id`: the specification does not list one. */
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
  const { program_id, param, value, destination_url } = fields;
  await refuseHandleOfAnother(tx, fields);
  const existing = await linkWithValue(tx, fields);
  if (existing) throw valueTaken(fields, existing);
  const url = trackedUrl(destination_url, param, value);
  const link = await links.insert(tx, { ...fields, id: newId('lnk'), url }, sql`on conflict do nothing`);
  if (!link) throw valueTaken(fields, await linkWithValue(tx, fields));
  tx.emit(event('affiliate_link.created', { ...link, program_id }));
  return link;
}

/** Under the program's `url_params`, a link must not take the visitors of another partner's handle. */
async function refuseHandleOfAnother(tx: Tx, { program_id, partner_id, param, value }: NewLink): Promise<void> {
  const handles_of_others = sql`t.param = ${param} and t.link_id is null and t.partner_id <> ${partner_id}`;
  const holder = await claimValue(tx, program_id, value, handles_of_others);
  if (!holder) return;
  throw heldHandle('value', value, await partners.get(tx, holder.partner_id));
}

/** The link that has the value under the parameter, letter case ignored. */
const linkWithValue = (tx: Tx, { program_id, param, value }: NewLink): Promise<Link | undefined> =>
  links.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program_id} and t.param = ${param} and t.value_key = lower(${value}::text)`,
  );

const valueTaken = ({ param, value }: NewLink, existing: Link | undefined): Problem =>
  alreadyExists(
    'value',
    `A link with ${param}=${existing?.value ?? value} already exists in this program, where letter case is ignored. Use a different value.`,
    existing,
  );

/** A link of another organization with this slug is not visible here: the unique constraint refuses the slug then, without `existing`. */
async function refuseTakenSlug(tx: Tx, link: Link, slug: string): Promise<void> {
  const existing = await links.find(tx, sql`${tenant(tx)} and t.short_slug = ${slug} and t.id <> ${link.id}`);
  if (existing)
    throw alreadyExists(
      'short_slug',
      `A link with the short slug '${slug}' already exists. Use a different one.`,
      existing,
    );
}

/**
 * The destination with the tracking parameter. Every other byte of the query and the fragment is kept, because they may be signed. An
 * existing parameter of this name is replaced in its position.
 */
export const trackedUrl = (destination: string, param: string, value: string): string => {
  const { page, parts, fragment } = splitUrl(destination);
  const tracking = new URLSearchParams([[param, value]]).toString();
  const at = parts.findIndex((part) => isNamed(part, param));
  const kept = parts.filter((part, nth) => nth === at || !isNamed(part, param));
  if (at >= 0) kept[at] = tracking;
  else if (kept.at(-1) === '') kept[kept.length - 1] = tracking;
  else kept.push(tracking);
  return `${page}?${kept.join('&')}${fragment}`;
};

/** The query parameter by which a short URL passes the id of its click to the destination. */
export const click_param = 'rail_click';

/**
 * A link's URL with the query that the visitor sent. The visitor's parameters replace those of the destination of the same name, except the
 * tracking parameter and the click's id.
 * @param query without the question mark
 */
export function withVisitorQuery(url: string, query: string, param: string): string {
  const sent = query.split('&').filter((part) => part !== '' && !isNamed(part, param) && !isNamed(part, click_param));
  if (sent.length === 0) return url;
  const { page, parts, fragment } = splitUrl(url);
  const names = new Set(sent.map(nameOf));
  const kept = parts.filter((part) => part !== '' && !names.has(nameOf(part)));
  return `${page}?${[...kept, ...sent].join('&')}${fragment}`;
}

function splitUrl(url: string): { page: string; parts: string[]; fragment: string } {
  const [, page = '', query = '', fragment = ''] = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(url) as RegExpExecArray;
  return { page, parts: query.slice(1).split('&'), fragment };
}

const nameOf = (part: string): string => new URLSearchParams(part).keys().next().value ?? '';

const isNamed = (part: string, param: string): boolean => new URLSearchParams(part).has(param);
