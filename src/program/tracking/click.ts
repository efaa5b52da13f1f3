import { isbot } from 'isbot';
import { z } from 'zod';
import { enqueueExclusive } from '../../core/jobs/concurrency.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insertion } from '../../core/postgres/write.ts';
import { resource } from '../../core/resource/resource.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { program_id } from '../events/fields.ts';
import { links } from '../partners/link.ts';
import { partners } from '../partners/partner.ts';
import { totalOf } from '../programs/tally.ts';
import { referrals } from './referral.ts';

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
    is_bot: z
      .boolean()
      .describe(
        'Whether the user agent is that of a bot. Such a click earns no credit, and neither reports, stats nor lists count it, unless a list is asked for bots.',
      ),
    created_at: timestamp,
  },
});

export type Click = z.infer<typeof clicks.record>;

/** Removes the login before the host of a URL: it names a person, and may hold a password. Any other text is left as it is. */
function withoutLogin(url: string): string {
  const parsed = URL.parse(url);
  if (!parsed || (parsed.username === '' && parsed.password === '')) return url;
  parsed.username = '';
  parsed.password = '';
  return parsed.href;
}

/** A click that is to be recorded. */
export interface NewClick {
  program_id: string;
  partner_id: string;
  link_id: string | null;
  param: string;
  value: string;
  visitor_token: string;
  landing_url: string | null;
  referer: string | null;
  user_agent: string | null;
  country: string | null;
  device: string | null;
  ip_hash: string | null;
  made_while_paused: boolean;
  /** The request that records it. */
  request_id: string | null;
}

/** Inserts clicks with the commit, and enqueues the job that attributes them and checks them for fraud. */
export function recordClicks(tx: Tx, given: NewClick[]): Click[] {
  if (given.length === 0) return [];
  const rows = given.map((click) => ({
    id: newId('clk'),
    ...click,
    is_bot: isbot(click.user_agent),
    landing_url: click.landing_url && withoutLogin(click.landing_url),
    referer: click.referer && withoutLogin(click.referer),
    created_at: tx.now,
  }));
  tx.send(insertion(tx, 'program.click', rows));
  enqueueExclusive(tx, 'program/attribute_clicks');
  return rows.map(recordOf);
}

/** In the order of the record's fields. */
const recordOf = (row: NewClick & Pick<Click, 'id' | 'is_bot' | 'created_at'>): Click => ({
  ...{ id: row.id, object: 'click', program_id: row.program_id, partner_id: row.partner_id },
  ...{ link_id: row.link_id, referral_id: null, user_agent: row.user_agent, referer: row.referer },
  ...{ country: row.country, device: row.device, landing_url: row.landing_url, is_bot: row.is_bot },
  created_at: row.created_at,
});
