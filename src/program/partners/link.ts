import { z } from 'zod';
import { resource } from '../../core/resource/resource.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { countersOf, rowsOf, totalOf } from '../programs/tally.ts';
import { partners } from './partner.ts';

const counters = { clicks: rowsOf('click'), referrals: rowsOf('referral'), customers: rowsOf('customer') };

export const links = resource({
  object: 'link',
  plural: 'links',
  table: 'program.link',
  unique: { link_value_key_unique: 'value', link_short_slug_unique: 'short_slug' },
  total: totalOf('link'),
  doc: "A partner's tracking link: the URL of a page on your website with a tracking parameter.",
  soft_delete: true,
  relations: { partner: partners },
  fields: {
    id: id('lnk'),
    object: objectName('link'),
    partner_id: id('part'),
    param: text.describe('The query parameter that carries the value, such as `ref` in `?ref=ada`.'),
    value: text.describe(
      "The value of the query parameter. Unique in the program together with `param`; letter case is ignored. If `param` is one of the program's `url_params`, no other partner can have it as a handle.",
    ),
    destination_url: text.describe('The page that the link leads to.'),
    url: text.describe('The destination URL with the tracking parameter.'),
    short_url: text
      .nullable()
      .describe(
        "A short URL that records a click and redirects to `url`, with the visitor's own query and the id of the click as `rail_click`. Send this id as `click_id` when the visitor signs up.",
      ),
    short_slug: text
      .nullable()
      .describe(
        'The last part of the short URL: 3 to 64 letters, digits, hyphens or underscores. Unique across all programs.',
      ),
    short_domain: text.nullable().describe('The host name of the short URL.'),
    label: text.nullable().describe('Your name for the link. Null if not provided.'),
    rate_override: z
      .json()
      .describe(
        'The commission rate of sales through this link, which takes precedence over all rules: `{rate_type, rate_value}`. Null: the rules apply.',
      ),
    created_at: timestamp,
    updated_at: timestamp,
  },
  stats: {
    fields: {
      clicks: z.int().describe('Clicks on the link.'),
      referrals: z.int().describe('Visitors referred through the link.'),
      customers: z.int().describe('Customers attributed through the link.'),
    },
    load: (tx, rows) => countersOf(tx, rows, counters),
  },
});

export type Link = z.infer<typeof links.record>;
