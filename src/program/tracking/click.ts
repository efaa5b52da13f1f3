import sql from 'sql-template-tag';
import { z } from 'zod';
import { enqueueTurn } from '../../core/jobs/turns.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { allows, statusesThat } from '../../core/resource/states.ts';
import { details, textDetail, urlDetail, withWarnings } from '../../core/values/detail.ts';
import {
  id,
  objectName,
  text,
  timestamp,
  visitedUrl,
  visitorAddress,
  visitorCountry,
} from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { asSeen } from '../../core/values/texts/look_alike.ts';
import { program_id } from '../events/fields.ts';
import { links } from '../partners/link.ts';
import { partner_states, partners } from '../partners/partner.ts';
import { countryValue, groupFilter, keyFilter, timeFilters } from '../programs/period.ts';
import { type Program, program_states, programs } from '../programs/program.ts';
import { totalOf } from '../programs/tally.ts';
import { referrals } from './referral.ts';
import { hashAddress } from './visitor_address.ts';

export const clicks = resource({
  object: 'click',
  plural: 'clicks',
  table: 'program.click',
  total: totalOf('click'),
  doc: "A visit to your website through a partner's link or handle.",
  relations: { partner: partners, link: links, referral: referrals },
  fields: {
    id: id('clk'),
    object: objectName('click'),
    program_id,
    partner_id: id('part'),
    link_id: id('lnk')
      .nullable()
      .describe("The link that the visitor followed. Null if the visitor used the partner's handle."),
    referral_id: id('ref')
      .nullable()
      .describe(
        'The referral that the click is credited to. Null until a job has attributed the click, and if it earned no credit.',
      ),
    user_agent: text.nullable().describe("The visitor's user agent. Null if not provided."),
    referer: text.nullable().describe('The page that the visitor came from. Null if not provided.'),
    country: text.nullable().describe('ISO 3166-1 alpha-2 country code. Null if not provided.'),
    device: text.nullable().describe('The kind of device, as you named it. Null if not provided.'),
    landing_url: text.nullable().describe('The URL of the page where the visitor arrived.'),
    created_at: timestamp,
  },
});

type Click = z.infer<typeof clicks.record>;

const landing_url = visitedUrl.nullable();

export const clickOperations: Operation[] = [
  ...readOperations({
    resource: clicks,
    within: programs,
    by: ['partner_id', 'referral_id'],
    filters: {
      link_id: keyFilter(sql`t.link_id`, 'Returns only clicks through this link.'),
      country: keyFilter(sql`t.country`, 'Returns only clicks from this country.', countryValue),
      landing_page: keyFilter(
        sql`program.landing_page(t.landing_url)`,
        'Returns only clicks that arrived at this page: host and path, as reports have it.',
      ),
      group_id: groupFilter,
      ...timeFilters({ at: sql`t.created_at`, name: 'created_at', id_prefix: 'clk' }),
    },
  }),
  operation({
    name: 'clicks.create',
    title: 'Record a click',
    method: 'POST',
    path: '/v1/clicks',
    scope: 'clicks:write',
    summary: 'Records a click.',
    doc: 'The value is matched to a link, or else to a partner handle. A job then creates or updates the referral. Clicks with the same `visitor_token` share one referral. No click is refused for what a browser or a proxy says: what cannot be used of `landing_url`, `referrer`, `ip`, `user_agent`, `country` and `device` is shortened or left out, and `warnings` says so.',
    body: z.strictObject({
      program_id,
      value: text
        .min(1)
        .max(64)
        .describe(
          "The partner handle or link value in the URL of the visit. A handle that was changed still counts for its partner for the program's `cookie_days`.",
        ),
      landing_url: landing_url.describe(
        'The URL of the page where the visitor arrived. Null: not known. A user name and password in it are not stored.',
      ),
      visitor_token: text
        .min(8)
        .max(128)
        .describe(
          'Your identifier of the browser, such as a cookie value. Clicks with the same token share one referral.',
        ),
      param: text.min(1).max(32).default('ref').describe('The query parameter that carried the value.'),
      referrer: text
        .max(2048)
        .optional()
        .describe(
          'The page that the visitor came from. It becomes the `referer` of the click, without a user name and password.',
        ),
      ip: visitorAddress
        .optional()
        .describe("The visitor's IP address. Only a hash of it is stored. A port and a zone id are ignored."),
      user_agent: text.max(1024).optional(),
      country: visitorCountry.optional(),
      device: text.max(64).optional(),
    }),
    details: {
      landing_url: urlDetail(landing_url),
      referrer: textDetail(2048),
      ip: details.ip,
      user_agent: textDetail(1024),
      country: details.country,
      device: textDetail(64),
    },
    reply: withWarnings(clicks.record, 'ClickRecorded', 'The click.'),
    status: 201,
    async run({ tx, body, services }) {
      const program = await programs.get(tx, body.program_id, { param: 'program_id' });
      const { ip, referrer, ...fields } = body;
      const target = await targetOf(tx, program, body.param, body.value);
      const ip_hash = ip === undefined ? null : hashAddress(services.vault, ip);
      const made_while_paused = !allows(program_states, program.status, 'refer');
      return recordClick(tx, { ...fields, ...target, id: newId('clk'), referer: referrer, ip_hash, made_while_paused });
    },
  }),
];

/** What comes before the host of a URL names a person, and may be a password. Any other text is left as it is. */
function withoutLogin(url: string): string {
  const parsed = URL.parse(url);
  if (!parsed || (parsed.username === '' && parsed.password === '')) return url;
  parsed.username = '';
  parsed.password = '';
  return parsed.href;
}

/** Inserts a click, and enqueues the job that attributes it and checks it for fraud. */
export async function recordClick(
  tx: Tx,
  row: Partial<Click> & { id: string; landing_url: string | null } & Record<string, unknown>,
): Promise<Click> {
  const { landing_url, referer } = row;
  const urls = {
    landing_url: landing_url && withoutLogin(landing_url),
    ...(referer ? { referer: withoutLogin(referer) } : {}),
  };
  const click = await clicks.insert(tx, { ...row, ...urls, request_id: tx.request_id });
  enqueueTurn(tx, 'program/attribute_clicks');
  return click as Click;
}

interface ClickTarget {
  partner_id: string;
  link_id: string | null;
}

/**
 * The link with this `param` and `value`, or else the partner with this handle, or else the one who had it until recently, if
 * `param` is one of the program's `url_params`. Letter case is ignored. What is not found is looked for as it is seen.
 * @throws Problem resource_not_found when neither exists, or the partner's clicks are not recorded
 */
async function targetOf(tx: Tx, program: Program, param: string, value: string): Promise<ClickTarget> {
  const statuses = statusesThat(partner_states, 'record_click');
  const target = await tx.maybe<ClickTarget>(sql`
    select l.partner_id, l.id as link_id, 1 as choice
    from program.link l
    join program.partner p on p.organization_id = l.organization_id and p.id = l.partner_id
    where l.organization_id = ${tx.organization_id} and l.program_id = ${program.id} and l.param = ${param}
      and l.value_key = lower(${value}::text)
      and l.deleted_at is null and p.deleted_at is null and p.status = any(${statuses})
    union all
    select p.id, null, 2
    from program.partner p
    where p.organization_id = ${tx.organization_id} and p.program_id = ${program.id} and p.handle = ${value.toLowerCase()}
      and p.deleted_at is null and p.status = any(${statuses}) and ${program.url_params.includes(param)}::boolean
    union all
    select p.id, null, 3
    from program.handle_alias a
    join program.partner p on p.organization_id = a.organization_id and p.id = a.partner_id
    where a.organization_id = ${tx.organization_id} and a.program_id = ${program.id} and a.handle = ${value.toLowerCase()}
      and a.expires_at > ${tx.now}::timestamptz
      and p.deleted_at is null and p.status = any(${statuses}) and ${program.url_params.includes(param)}::boolean
    order by choice
    limit 1`);
  if (target) return { partner_id: target.partner_id, link_id: target.link_id };
  const seen = asSeen(value.replaceAll(/\p{Default_Ignorable_Code_Point}/gu, ''));
  if (seen !== value) return targetOf(tx, program, param, seen);
  throw new Problem(
    'resource_not_found',
    `No active partner matches ${param}=${value} in this program. The click was not recorded.`,
    { param: 'value' },
  );
}
