import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Caller, Operation } from '../../core/resource/operation.ts';
import { type Lock, lockOf, type Row, resource, tenant } from '../../core/resource/resource.ts';
import { statusSchema } from '../../core/resource/states.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { notFound, Problem } from '../../core/values/problem.ts';
import { brands } from '../brands/brand.ts';
import { teamMembers } from '../brands/team_member.ts';
import { base_path } from '../events/base_path.ts';
import { brand_id, channel, hidden_reasons, key } from '../events/fields.ts';
import { stages } from '../events/stages.ts';
import { isSample } from '../samples/sample.ts';

export const sources = ['manual', 'api', 'csv_import', 'search', 'scan', 'sample'] as const;

export const Evidence = z.object({
  kind: z
    .enum(['competitor_link', 'affiliate_network', 'coupon_page', 'keyword'])
    .describe(
      '`competitor_link`: a page links to a competitor. `affiliate_network`: a page links to an affiliate network. `coupon_page`: a page lists coupons. `keyword`: a page has a keyword of the brand.',
    ),
  url: text.describe('The URL of the page, or of the link.'),
  text: text.describe('What was found there.'),
});
export type Evidence = z.infer<typeof Evidence>;

const iso = (column: Sql): Sql => sql`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const fields = {
  id: id('fdi'),
  object: objectName('prospect'),
  brand_id,
  channel,
  key: key.describe(
    'The prospect in its channel: a registrable domain, the id of a channel, a handle. Unique in the brand and the channel, and never with an `@`.',
  ),
  name: text.nullable().describe('The name of the site, the channel or the person. Null if not known.'),
  url: text.nullable().describe('Where the prospect publishes. Null if not known.'),
  description: text.nullable().describe('What the prospect says of itself. Null if not known.'),
  country_code: text.nullable().describe('ISO 3166-1 alpha-2 country code. Null if not known.'),
  language_code: text.nullable().describe('ISO 639-1 language code. Null if not known.'),
  timezone: text.nullable().describe('The IANA time zone. Null if not known.'),
  followers: z.int().nullable().describe('How many people follow the prospect in the channel. Null if not known.'),
  score: z.int().nullable().describe('How well the prospect fits the brand, 0 to 100. Null if not scored yet.'),
  evidence: z.array(Evidence).describe('Why the prospect fits the brand.'),
  source: z
    .enum(sources)
    .describe(
      'Where the prospect comes from. `manual`: a person added it. `api`: a key that belongs to no user added it. `csv_import`: an import. `search`, `scan`: found by one. `sample`: one of the samples.',
    ),
  source_run_id: id('fsc').nullable().describe('The search or scan that found the prospect. Null if none did.'),
  stage: statusSchema(stages),
  saved: z.boolean().describe('Whether the prospect is saved. A prospect in a list is saved.'),
  hidden: z.boolean().describe('Whether the prospect is hidden.'),
  hidden_reason: z.enum(hidden_reasons).nullable().describe('Why the prospect is hidden. Null if not hidden.'),
  assignee_member_id: id('tm').nullable().describe('The assignee of the prospect, a team member. Null: nobody.'),
  do_not_contact: z
    .object({
      reason: z.enum(['manual', 'angry_reply', 'legal', 'complaint']).describe('Why.'),
      since: timestamp.describe('Since when.'),
    })
    .nullable()
    .describe('Set if the prospect is marked Do not contact, which bars it from outreach. Null if not marked.'),
  unsubscribed_at: timestamp.nullable().describe('When the prospect unsubscribed. Null if not unsubscribed.'),
  invited_at: timestamp
    .nullable()
    .describe('When the prospect was invited to the affiliate program. Null if not invited.'),
  invitation_token: text
    .nullable()
    .describe(
      'Identifies the invitation. Append it as `rail_invitation` to the link to your sign-up page, and send it as `invitation_token` when you create the partner or the application: it shows that the prospect joined, whichever email address they use. Null if not invited.',
    ),
  signed_up_at: timestamp.nullable().describe('When the prospect joined the affiliate program. Null if not signed up.'),
  partner_id: id('part').nullable().describe('The partner of the affiliate program service. Null if there is none.'),
  deal_id: id('fdl').nullable().describe('The current deal. Null if there is none.'),
  email_status: z
    .enum(['none', 'found', 'verified', 'bounced'])
    .describe(
      '`none`: no usable address is known. `found`: at least one usable address is known. `verified`: at least one is known to accept mail. `bounced`: mail to every known address bounced.',
    ),
  custom: z.record(z.string(), z.json()).describe('Your own key-value data, as you sent it.'),
  created_at: timestamp,
  updated_at: timestamp,
};

const records = resource({
  object: 'prospect',
  plural: 'prospects',
  base_path,
  table: 'recruitment.prospect',
  unique: { prospect_key_unique: 'key', prospect_invitation_unique: null },
  hard_delete: 'brand_id',
  doc: 'Who could become an affiliate of a brand: a website, a channel, a person. Once in each channel of a brand.',
  fields,
  computed: {
    do_not_contact: sql`case when t.do_not_contact_reason is not null then
      json_build_object('reason', t.do_not_contact_reason, 'since', ${iso(sql`t.do_not_contact_since`)}) end`,
  },
  relations: { brand: brands, assignee_member: teamMembers },
  stats: {
    fields: {
      sent: z.int().describe('Emails that were sent to the prospect.'),
      replies: z.int().describe('Replies of the prospect.'),
      last_sent_at: timestamp.nullable().describe('When the last email was sent. Null if none was sent.'),
    },
    load: loadStats,
  },
});

export type Prospect = z.infer<typeof records.record>;

/** Prospects of brands that are not deleted. To everything but what samples allow, a sample is a conflict. */
export const prospects = {
  ...records,
  /** @throws Problem resource_not_found; sample_prospect */
  async get(
    tx: Tx,
    prospect_id: string,
    { param = 'id', lock = false }: { param?: string; lock?: Lock } = {},
  ): Promise<Prospect> {
    refuseSample(prospect_id, param);
    const row = await records.find(tx, sql`${tenant(tx)} and t.id = ${prospect_id} and ${of_brand}`, lockOf(lock));
    if (!row) throw notFound('prospect', prospect_id, param);
    return row;
  },
  /** Reads the prospects that exist, locked until the transaction ends, in the order of their ids. */
  lockMany: (tx: Tx, ids: string[]): Promise<Prospect[]> =>
    tx.all<Prospect>(sql`
      select ${records.columns} from ${records.from}
      where ${tenant(tx)} and t.id = any(${ids}) and ${of_brand}
      order by t.id
      for no key update of t`),
};

const of_brand = sql`exists (
  select from recruitment.brand b
  where b.organization_id = t.organization_id and b.id = t.brand_id and b.deleted_at is null)`;

/** @throws Problem sample_prospect */
export function refuseSample(prospect_id: string, param: string): void {
  if (isSample(prospect_id)) {
    throw new Problem(
      'sample_prospect',
      'You can only retrieve, save, hide, move and add notes to a sample prospect. Use a prospect of a brand.',
      { param },
    );
  }
}

/** Any other action on a sample is refused alike, whatever the key: else a test key could not call these. */
export const refusingSamples = (operation: Operation): Operation =>
  operation.path.startsWith(`${base_path}/prospects/{id}`)
    ? { ...operation, refuse_test_key: ({ id: prospect_id = '' }) => refuseSample(prospect_id, 'id') }
    : operation;

/**
 * Refuses test keys: they may act on samples only.
 * @throws Problem test_key_not_allowed
 */
export function requireLiveKey({ mode }: Caller): void {
  if (mode === 'test') {
    throw new Problem(
      'test_key_not_allowed',
      'A test key can act on the 12 sample prospects only, sample_fdi_01 to sample_fdi_12. Use a live key.',
    );
  }
}

async function loadStats(tx: Tx, rows: Row[]): Promise<Map<string, object>> {
  const stats = await tx.all<Row & object>(sql`
    select t.id, t.sent, t.replies, t.last_sent_at
    from recruitment.prospect t
    where ${tenant(tx)} and t.id = any(${rows.map(({ id: prospect_id }) => prospect_id)})`);
  return new Map(stats.map(({ id: prospect_id, ...counts }) => [prospect_id, counts]));
}
