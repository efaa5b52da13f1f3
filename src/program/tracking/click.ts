import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { country, id, objectName, text, timestamp, url } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { partners } from '../partners/partner.ts';
import { assessLater } from '../programs/assess_later.ts';
import { type Program, programs } from '../programs/program.ts';
import { totalOf } from '../programs/tally.ts';
import { links } from './link.ts';
import { referrals } from './referral.ts';
import { hashAddress } from './visitor_address.ts';

export const clicks = resource({
  object: 'click',
  plural: 'clicks',
  table: 'program.click',
  total: totalOf('click'),
  doc: "A visit through a partner's link or handle.",
  relations: { partner: partners, link: links, referral: referrals },
  fields: {
    id: id('clk'),
    object: objectName('click'),
    program_id: id('prg'),
    partner_id: id('part'),
    link_id: id('lnk')
      .nullable()
      .describe("The link that was followed. Null: the visitor came by the partner's handle."),
    referral_id: id('ref').nullable().describe('Null until a job has judged the click, and where it earned no credit.'),
    user_agent: text.nullable().describe("The browser's name for itself. Null: not said."),
    referer: text.nullable().describe('The page that the visitor came from. Null: not said.'),
    country: text.nullable().describe('ISO 3166-1 alpha-2. Null: not said.'),
    device: text.nullable().describe('What kind of device it was, in your words. Null: not said.'),
    landing_url: text.nullable().describe('The address that the visitor arrived at.'),
    created_at: timestamp,
  },
});

type Click = z.infer<typeof clicks.record>;

/** What browsers say is no reason to lose a click: so much of it is kept. */
const cut = (most: number) => text.transform((said) => said.slice(0, most).toWellFormed());

export const clickOperations: Operation[] = [
  ...readOperations({ resource: clicks, within: programs, by: ['partner_id', 'link_id', 'referral_id'] }),
  operation({
    name: 'clicks.create',
    method: 'POST',
    path: '/v1/clicks',
    scope: 'clicks:write',
    summary: 'Records a click.',
    doc: 'The value is looked up among the links, then among the partner handles. A job makes the referral; the same `visitor_token` across clicks makes one.',
    body: z.strictObject({
      program_id: id('prg'),
      value: text.min(1).max(64).describe('The partner handle or link value that the visitor arrived with.'),
      landing_url: url,
      visitor_token: text
        .min(8)
        .max(128)
        .describe('Your id of the browser, as from a cookie: the same token across clicks makes one referral.'),
      param: text.min(1).max(32).default('ref').describe('The query parameter that carried the value.'),
      referrer: cut(2048).optional().describe('The page that the visitor came from: the `referer` of the click.'),
      ip: z
        .union([z.ipv4(), z.ipv6()], 'must be an IPv4 or IPv6 address, as 203.0.113.7')
        .optional()
        .describe('Hashed on write, never stored.'),
      user_agent: cut(1024).optional(),
      country: country.optional(),
      device: text.max(64).optional(),
    }),
    reply: clicks.schema,
    status: 201,
    async run({ tx, body, services }) {
      const of = await programs.get(tx, body.program_id, { param: 'program_id' });
      const { ip, referrer, ...rest } = body;
      const credited = await creditedBy(tx, of, body.param, body.value);
      const ip_hash = ip === undefined ? null : hashAddress(services.vault, ip);
      return recordClick(tx, { ...rest, ...credited, id: newId('clk'), referer: referrer, ip_hash });
    },
  }),
];

/** Writes a click; jobs judge whom it credits, and whether it looks like fraud. */
export async function recordClick(
  tx: Tx,
  row: Partial<Click> & Pick<Click, 'id'> & Record<string, unknown>,
): Promise<Click> {
  const made = await clicks.insert(tx, row);
  assessLater(tx, 'click', row.id);
  tx.enqueue('program/attribute_click', {
    organization_id: tx.organization_id,
    click_id: row.id,
    request_id: tx.request_id,
  });
  return made as Click;
}

/** Whose link or handle it is: the link by (param, value), else the handle when `param` is one of the program's. */
async function creditedBy(
  tx: Tx,
  of: Program,
  param: string,
  value: string,
): Promise<{ partner_id: string; link_id: string | null }> {
  const found = await tx.maybe<{ partner_id: string; link_id: string | null }>(sql`
    select l.partner_id, l.id as link_id, 1 as choice
    from program.link l
    join program.partner p on p.organization_id = l.organization_id and p.id = l.partner_id
    where l.organization_id = ${tx.organization_id} and l.program_id = ${of.id} and l.param = ${param} and l.value = ${value}
      and l.deleted_at is null and p.deleted_at is null and p.status in ('active', 'suspended')
    union all
    select p.id, null, 2
    from program.partner p
    where p.organization_id = ${tx.organization_id} and p.program_id = ${of.id} and p.handle = ${value.toLowerCase()}
      and p.deleted_at is null and p.status in ('active', 'suspended') and ${of.url_params.includes(param)}::boolean
    order by choice
    limit 1`);
  if (!found) {
    throw new Problem(
      'resource_not_found',
      `No active partner stands behind ${param}=${value} in this program. Nothing was recorded.`,
      { param: 'value' },
    );
  }
  return { partner_id: found.partner_id, link_id: found.link_id };
}
