import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { bulkOf } from '../../core/resource/bulk.ts';
import { type Member, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import type { Services } from '../../core/resource/services.ts';
import { allows, statusesThat } from '../../core/resource/states.ts';
import { details, textDetail, urlDetail, withWarnings } from '../../core/values/detail.ts';
import { text, visitedUrl, visitorAddress, visitorCountry } from '../../core/values/fields.ts';
import { notFound, Problem } from '../../core/values/problem.ts';
import { asSeen } from '../../core/values/texts/look_alike.ts';
import { program_id } from '../events/fields.ts';
import { partner_states } from '../partners/partner.ts';
import { countryValue, groupFilter, keyFilter, timeFilters } from '../programs/period.ts';
import { type Program, program_states, programs } from '../programs/program.ts';
import { totalOf } from '../programs/tally.ts';
import { type Click, clicks, type NewClick, recordClicks } from './click.ts';
import { hashAddress } from './visitor_address.ts';

const landing_url = visitedUrl.nullable();

/** A click as it is sent. */
const SentClick = z.strictObject({
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
    .describe('Your identifier of the browser, such as a cookie value. Clicks with the same token share one referral.'),
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
});
export type SentClick = z.infer<typeof SentClick>;

const sent_details = {
  landing_url: urlDetail(landing_url),
  referrer: textDetail(2048),
  ip: details.ip,
  user_agent: textDetail(1024),
  country: details.country,
  device: textDetail(64),
};

const recordClickOperation = operation({
  name: 'clicks.create',
  title: 'Record a click',
  method: 'POST',
  path: '/v1/clicks',
  scope: 'clicks:write',
  summary: 'Records a click.',
  doc: 'The value is matched to a link, or else to a partner handle. A job then creates or updates the referral. Clicks with the same `visitor_token` share one referral. No click is refused for what a browser or a proxy says: what cannot be used of `landing_url`, `referrer`, `ip`, `user_agent`, `country` and `device` is shortened or left out, and `warnings` says so.',
  body: SentClick,
  details: sent_details,
  reply: withWarnings(clicks.record, 'ClickRecorded', 'The click.'),
  status: 201,
  ahead: ({ tx, body }) => targetsOf(tx, [body]),
  async run({ tx, body, services, ahead }) {
    const [click] = await recordSentClicks({ tx, services }, [{ body, request_id: tx.request_id }], ahead);
    if (click instanceof Problem) throw click;
    return click as Click;
  },
  together: {
    ahead: (tx, members) =>
      targetsOf(
        tx,
        members.map(({ body }) => body),
      ),
    run: recordSentClicks,
  },
});

export const clickOperations: Operation[] = [
  ...readOperations({
    resource: clicks,
    within: programs,
    by: ['partner_id', 'referral_id'],
    filters: {
      link_id: keyFilter(sql`t.link_id`, 'Returns only clicks through this link.'),
      is_bot: {
        schema: z
          .enum(['true', 'false'])
          .optional()
          .describe('`true`: returns only clicks of bots. By default they are left out.'),
        where: (value: 'true' | 'false') => (value === 'true' ? sql`t.is_bot` : sql`not t.is_bot`),
        absent: { where: sql`not t.is_bot`, total: totalOf('click') },
      },
      country: keyFilter(sql`t.country`, 'Returns only clicks from this country.', countryValue),
      landing_page: keyFilter(
        sql`program.landing_page(t.landing_url)`,
        'Returns only clicks that arrived at this page: host and path, as reports have it.',
      ),
      group_id: groupFilter,
      ...timeFilters({ at: sql`t.created_at`, name: 'created_at', id_prefix: 'clk' }),
    },
  }),
  recordClickOperation,
  bulkOf<SentClick>(recordClickOperation, {
    noun: 'click',
    summary: 'Records up to 1,000 clicks.',
    doc: 'For sites that collect clicks and send them together. A click is dated when it is recorded.',
    async inSets({ tx, services }, items) {
      const sent = items.map(({ body }) => ({ body, request_id: tx.request_id }));
      const outcomes = await recordSentClicks(
        { tx, services },
        sent,
        await targetsOf(
          tx,
          sent.map(({ body }) => body),
        ),
      );
      return new Map(items.map(({ nth }, at) => [nth, outcomes[at]]));
    },
  }),
];

/** @returns what each click came to: a problem where it was not recorded */
export async function recordSentClicks(
  { tx, services }: { tx: Tx; services: Services },
  sent: Member<SentClick>[],
  targets: Target[],
): Promise<(Click | Problem)[]> {
  const checked = sent.map(({ body, request_id }, nth) =>
    newClickOf(services, body, request_id, targets[nth] as Target),
  );
  const recorded = recordClicks(
    tx,
    checked.filter((one): one is NewClick => !(one instanceof Problem)),
  );
  return checked.map((one) => (one instanceof Problem ? one : (recorded.shift() as Click)));
}

function newClickOf(
  { vault }: Services,
  { ip, referrer, user_agent, country, device, ...fields }: SentClick,
  request_id: string | null,
  { program_status, partner_id, link_id }: Target,
): NewClick | Problem {
  if (program_status === null) return notFound('program', fields.program_id, 'program_id');
  if (partner_id === null) return noTarget(fields);
  return {
    ...{ ...fields, partner_id, link_id, request_id },
    ...{ user_agent: user_agent ?? null, country: country ?? null, device: device ?? null, referer: referrer ?? null },
    ip_hash: ip === undefined ? null : hashAddress(vault, ip),
    made_while_paused: !allows(program_states, program_status, 'refer'),
  };
}

const noTarget = ({ param, value }: Pick<SentClick, 'param' | 'value'>): Problem =>
  new Problem(
    'resource_not_found',
    `No active partner matches ${param}=${value} in this program. The click was not recorded.`,
    { param: 'value' },
  );

type Sought = Pick<SentClick, 'program_id' | 'param' | 'value'>;

/** The partner that a click is through: null where the program has none whose clicks are recorded. */
export interface Target {
  program_status: Program['status'] | null;
  partner_id: string | null;
  link_id: string | null;
}

/** Finds the targets. A value that is not found is searched again without invisible characters. */
export async function targetsOf(tx: Tx, sought: Sought[]): Promise<Target[]> {
  const targets = await findTargets(tx, sought);
  const again = sought
    .map(({ value, ...one }, nth) => ({
      ...one,
      value: asSeen(value.replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')),
      nth,
    }))
    .filter(({ nth, value }) => targets[nth]?.partner_id === null && value !== sought[nth]?.value);
  if (again.length === 0) return targets;
  const seen = await findTargets(tx, again);
  for (const [at, { nth }] of again.entries()) targets[nth] = seen[at] as Target;
  return targets;
}

/**
 * For each the link with this `param` and `value`, or else the partner with this handle, or else the one who had it until recently, if
 * `param` is one of the program's `url_params`. Letter case is ignored.
 */
function findTargets(tx: Tx, sought: Sought[]): Promise<Target[]> {
  const statuses = statusesThat(partner_states, 'record_click');
  const records = sql`p.deleted_at is null and p.status = any(${statuses})`;
  return tx.all<Target>(sql`
    select g.status as program_status, c.partner_id, c.link_id
    from unnest(
      ${sought.map(({ program_id }) => program_id)}::text[], ${sought.map(({ param }) => param)}::text[],
      ${sought.map(({ value }) => value)}::text[], ${sought.map(({ value }) => value.toLowerCase())}::text[]
    ) with ordinality as s (program_id, param, value, handle, nth)
    left join program.program g on g.organization_id = ${tx.organization_id} and g.id = s.program_id
    left join lateral (
      select l.partner_id, l.id as link_id, 1 as choice
      from program.link l
      join program.partner p on p.organization_id = l.organization_id and p.id = l.partner_id
      where l.organization_id = g.organization_id and l.program_id = g.id and l.param = s.param and l.value_key = lower(s.value)
        and l.deleted_at is null and ${records}
      union all
      select p.id, null, 2
      from program.partner p
      where p.organization_id = g.organization_id and p.program_id = g.id and p.handle = s.handle and s.param = any(g.url_params) and ${records}
      union all
      select p.id, null, 3
      from program.handle_alias a
      join program.partner p on p.organization_id = a.organization_id and p.id = a.partner_id
      where a.organization_id = g.organization_id and a.program_id = g.id and a.handle = s.handle and a.expires_at > clock_timestamp()
        and s.param = any(g.url_params) and ${records}
      order by choice
      limit 1
    ) c on true
    order by s.nth`);
}
