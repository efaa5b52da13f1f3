/** A campaign that sends, with everything that it needs: rows as the API would make them. */

import sql from 'sql-template-tag';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { newId } from '../../../src/core/values/id.ts';
import { hashesOf } from '../../../src/recruitment/contact/address.ts';
import { keyedHash } from '../../../src/recruitment/prospects/keyed_hash.ts';
import type { Json, Rail } from '../../harness.ts';
import type { Mailbox } from '../mailbox.ts';

export const always = { timezone: 'UTC', days: [1, 2, 3, 4, 5, 6, 7], from: '00:00', to: '24:00' };

export interface Asked {
  mailbox: Pick<Mailbox, 'smtp' | 'imap'>;
  inboxes?: number;
  prospects?: number;
  /** The address of each prospect, by its number. */
  address?: (nth: number) => string;
  steps?: Json[];
  campaign?: Json;
  inbox?: Json;
}

export interface Sender {
  organization_id: string;
  brand_id: string;
  campaign_id: string;
  inbox_ids: string[];
  sequence_ids: string[];
  prospect_ids: string[];
}

type Place = Pick<Rail, 'store' | 'services' | 'query'>;

export const step = (given: Json = {}): Json => ({
  ...{ id: newId('fst'), delay_days: 0, weight: 1, subject: 'Hello {{ prospect.name }}' },
  ...{ body_text: 'We like {{ prospect.name }}.', body_html: null, variants: [] },
  ...given,
});

/** Makes a campaign in state `sending`, whose sequences are due, one after the other. */
export async function openSender(
  { store, services: { vault }, query }: Place,
  organization_id: string,
  { mailbox, inboxes = 1, prospects = 1, steps = [step()], ...asked }: Asked,
): Promise<Sender> {
  const { address = (nth: number) => `reader${nth}@blog${nth}.example.com` } = asked;
  const opening = { organization_id, request_id: null };
  const hash = await transaction(store, opening, (tx) => keyedHash(tx, vault));
  const ids = (prefix: string, count: number) => Array.from({ length: count }, () => newId(prefix));
  const [brand_id, campaign_id] = [newId('fbr'), newId('fca')];
  const inbox_ids = ids('fin', inboxes);
  const prospect_ids = ids('fdi', prospects);
  const sequence_ids = ids('fsq', prospects);
  await query(sql`
    insert into recruitment.brand (organization_id, id, name, website_url, sender_company, postal_address, privacy_url)
    values (${organization_id}, ${brand_id}, 'Acme', 'https://acme.example.com', 'Acme GmbH', 'Street 1, Berlin', 'https://acme.example.com/privacy')`);
  const {
    smtp: { password: smtp_password, ...smtp },
    imap: { password: imap_password, ...imap },
  } = mailbox;
  for (const [nth, id] of inbox_ids.entries()) {
    const given = { daily_limit: 500, ramp: null, min_gap_s: 0, max_gap_s: 0, timezone: 'UTC', ...asked.inbox };
    const secrets = vault.encrypt(JSON.stringify({ smtp_password, imap_password }), id);
    await query(sql`
      insert into recruitment.inbox (organization_id, id, email, from_name, smtp, imap, secrets, daily_limit, ramp, min_gap_s, max_gap_s, timezone, connected_at)
      values (${organization_id}, ${id}, ${`grace${nth}@acme.example.com`}, 'Grace', ${JSON.stringify(smtp)}, ${JSON.stringify(imap)}, ${secrets},
        ${given.daily_limit}, ${given.ramp && JSON.stringify(given.ramp)}, ${given.min_gap_s}, ${given.max_gap_s}, ${given.timezone}, now())`);
  }
  const campaign = {
    ...{ schedule: always, daily_new_limit: null, max_per_domain_day: 3, bounce_pause_bps: 300, reply_wait_days: 5 },
    ...asked.campaign,
  };
  await query(sql`
    insert into recruitment.campaign (organization_id, id, brand_id, name, inbox_ids, steps, schedule, daily_new_limit, max_per_domain_day,
      bounce_pause_bps, reply_wait_days, allow_risky, stop_for_company, state, counted_since, launched_at)
    values (${organization_id}, ${campaign_id}, ${brand_id}, 'Spring', ${inbox_ids}, ${JSON.stringify(steps)}, ${JSON.stringify(campaign.schedule)},
      ${campaign.daily_new_limit}, ${campaign.max_per_domain_day}, ${campaign.bounce_pause_bps}, ${campaign.reply_wait_days}, true, true, 'sending',
      now(), now())`);
  for (let from = 0; from < prospects; from += 1_000) {
    const rows = prospect_ids.slice(from, from + 1_000).map((prospect_id, place) => {
      const nth = from + place;
      const email = address(nth);
      const email_id = newId('fea');
      const { address_hmac, domain_hmac } = hashesOf(hash, email);
      return {
        ...{ prospect_id, email_id, sequence_id: sequence_ids[nth], inbox_id: inbox_ids[nth % inboxes], nth },
        address: vault.encrypt(email, email_id).toString('hex'),
        ...{ address_hmac: address_hmac.toString('hex'), domain_hmac: domain_hmac.toString('hex') },
      };
    });
    const given = sql`json_to_recordset(${JSON.stringify(rows)}::json) as g (prospect_id text, email_id text, sequence_id text, inbox_id text,
      nth integer, address text, address_hmac text, domain_hmac text)`;
    await query(sql`
      insert into recruitment.prospect (organization_id, id, brand_id, channel, key, name, source, email_status)
      select ${organization_id}, g.prospect_id, ${brand_id}, 'youtube', 'channel' || g.nth, 'Blog ' || g.nth, 'manual', 'found' from ${given}`);
    await query(sql`
      insert into recruitment.email_address (organization_id, id, prospect_id, address, address_hmac, domain_hmac, source, verification, found_at)
      select ${organization_id}, g.email_id, g.prospect_id, decode(g.address, 'hex'), decode(g.address_hmac, 'hex'), decode(g.domain_hmac, 'hex'),
        'manual', 'valid', now() from ${given}`);
    await query(sql`
      update recruitment.prospect p set email_status = 'verified'
      where p.organization_id = ${organization_id} and p.id = any(${rows.map(({ prospect_id }) => prospect_id)})`);
    await query(sql`
      insert into recruitment.sequence (organization_id, id, campaign_id, brand_id, prospect_id, inbox_id, email_address_id, address_hmac, domain_hmac,
        company_hmac, due_at)
      select ${organization_id}, g.sequence_id, ${campaign_id}, ${brand_id}, g.prospect_id, g.inbox_id, g.email_id, decode(g.address_hmac, 'hex'),
        decode(g.domain_hmac, 'hex'), decode(g.domain_hmac, 'hex'), now() - interval '1 minute' + g.nth * interval '1 microsecond' from ${given}`);
  }
  return { organization_id, brand_id, campaign_id, inbox_ids, sequence_ids, prospect_ids };
}

/** Enqueues the jobs of the queues, as the sweep does each minute. */
export const wake = (rail: Pick<Rail, 'tick'>): Promise<unknown> =>
  rail.tick('recruitment/send_due', new Date().toISOString());
