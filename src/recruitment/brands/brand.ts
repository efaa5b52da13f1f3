import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import {
  country,
  domain,
  id,
  language,
  notBlank,
  objectName,
  oneLine,
  text,
  timestamp,
  url,
  withDefaults,
} from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { ceiling, minorNotNegative, storedCurrency } from '../../core/values/money.ts';
import { timeZone } from '../../core/values/time_zone.ts';
import { linkedProgram } from '../../program/activation.ts';
import { base_path } from '../events/base_path.ts';
import { channels } from '../events/fields.ts';
import { provider_currency } from '../plan/limits.ts';
import { requireRoom } from '../plan/plan.ts';
import { queueScan } from '../runs/queue_scan.ts';
import { countProspects } from './tally.ts';

const scan_schedules = ['weekly', 'off'] as const;

export const brands = resource({
  object: 'brand',
  plural: 'brands',
  base_path,
  table: 'recruitment.brand',
  doc: 'What affiliates are recruited for: where prospects are searched for, and who writes to them.',
  soft_delete: true,
  fields: {
    id: id('fbr'),
    object: objectName('brand'),
    name: text.describe('The name of the brand.'),
    website_url: text.describe('The website of the brand.'),
    keywords: z.array(text).describe('What prospects write about: words and phrases that scans search for.'),
    competitors: z.array(text).describe('The domains of competitors. Pages that link to them are evidence.'),
    languages: z.array(text).describe('ISO 639-1 codes of the languages of prospects. Empty: any language.'),
    countries: z.array(text).describe('ISO 3166-1 alpha-2 codes of the countries of prospects. Empty: any country.'),
    channels: z.array(z.enum(channels)).describe('The channels that scans search. Empty: all channels.'),
    program_id: id('prg')
      .nullable()
      .describe('The program of the affiliate program service that prospects join. Null: none.'),
    sender_company: text.nullable().describe('The company in the footer of emails. Null if not provided.'),
    postal_address: text
      .nullable()
      .describe('The postal address in the footer of emails. A campaign cannot be launched without one.'),
    privacy_url: text
      .nullable()
      .describe('The URL of the privacy notice in the footer of emails. A campaign cannot be launched without one.'),
    default_timezone: text.describe(
      'The IANA time zone of the brand. It applies to prospects whose time zone and country are not known.',
    ),
    scan_schedule: z
      .enum(scan_schedules)
      .describe(
        '`weekly`: the brand is scanned each week. Has no effect if the plan has no `weekly_scans`. `off`: only on request.',
      ),
    scan_weekday: z.int().describe('The day of the weekly scan in `default_timezone`, from 1 (Monday) to 7 (Sunday).'),
    scan_ceiling_minor: minorNotNegative
      .nullable()
      .describe('The most that one scan may spend on search providers, in US cents. Null: what the plan has left.'),
    currency: storedCurrency.describe('ISO 4217. The currency of `scan_ceiling_minor`.'),
    retention_days: z
      .int()
      .describe(
        'Prospects in the stage `found` who were never sent an email nor invited, and have no partner or deal, are erased `retention_days` after they were added. 1 to 3650.',
      ),
    last_scan_at: timestamp.nullable().describe('When the last scan finished. Null if none has.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
  stats: {
    fields: {
      prospects: z.int().describe('All prospects of the brand, including hidden ones.'),
      saved: z.int().describe('Saved prospects.'),
      contacted: z.int().describe('Prospects who were sent an email.'),
      interested: z.int().describe('Prospects in the stages `interested`, `negotiating` and `agreed`.'),
      active: z.int().describe('Prospects in the stage `active`.'),
    },
    load: countProspects,
  },
  computed: { currency: sql`${provider_currency}::text` },
});

export type Brand = z.infer<typeof brands.record>;

const phrase = notBlank(200);

/** Each once, in the order in which they were sent. */
const once = <T>(values: T[]): T[] => [...new Set(values)];

const settings = {
  name: oneLine(200),
  website_url: url,
  keywords: z.array(phrase).max(100).overwrite(once),
  competitors: z.array(domain).max(100).overwrite(once),
  languages: z.array(language).max(50).overwrite(once),
  countries: z.array(country).max(250).overwrite(once),
  channels: z.array(z.enum(channels)).max(channels.length).overwrite(once),
  program_id: id('prg').nullable(),
  sender_company: oneLine(200).nullable(),
  postal_address: notBlank(1000).nullable(),
  privacy_url: url.nullable(),
  default_timezone: timeZone,
  scan_schedule: z.enum(scan_schedules),
  scan_weekday: z.int().min(1).max(7),
  scan_ceiling_minor: ceiling.nullable(),
  retention_days: z.int().min(1).max(3650),
};

const { name, website_url, ...optional } = settings;
const defaults = {
  ...{ keywords: [], competitors: [], languages: [], countries: [], channels: [], program_id: null },
  ...{ sender_company: null, postal_address: null, privacy_url: null, default_timezone: 'UTC' },
  ...{ scan_schedule: 'weekly', scan_weekday: 1, scan_ceiling_minor: null, retention_days: 180 },
} satisfies Partial<Brand>;

export const brandOperations: Operation[] = [
  ...readOperations({ resource: brands, by: ['program_id', 'scan_schedule'] }),
  operation({
    name: 'brands.create',
    method: 'POST',
    path: `${base_path}/brands`,
    scope: 'brands:write',
    summary: 'Creates a brand.',
    doc: 'Its first scan is queued: it visits the website and finds prospects.',
    body: z.strictObject({ name, website_url, ...withDefaults(optional, defaults) }),
    reply: brands.schema,
    status: 201,
    errors: ['plan_limit_reached'],
    async run({ tx, body }) {
      await requireRoom(tx, 'brands', countBrands);
      if (body.program_id !== null) await linkedProgram(tx, body.program_id);
      const brand = (await brands.insert(tx, { ...body, id: newId('fbr') })) as Brand;
      await queueScan(tx, brand, 'first');
      return brand;
    },
  }),
  operation({
    name: 'brands.update',
    method: 'PATCH',
    path: `${base_path}/brands/{id}`,
    scope: 'brands:write',
    summary: 'Updates a brand.',
    params: idParams,
    body: z.strictObject(settings).partial(),
    reply: brands.schema,
    async run({ tx, params, body }) {
      await brands.get(tx, params.id, { lock: true });
      if (body.program_id) await linkedProgram(tx, body.program_id);
      return brands.update(tx, params.id, body);
    },
  }),
];

const countBrands = (tx: Tx) =>
  tx.one<{ count: number }>(
    sql`select count(*)::integer as count from ${brands.from} where ${tenant(tx)} and ${brands.alive}`,
  );
