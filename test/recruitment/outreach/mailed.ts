/** A prospect of a brand who was sent an email by a campaign, as rows: for what begins after sending. */

import { type Tx, transaction } from '../../../src/core/postgres/transaction.ts';
import { newId } from '../../../src/core/values/id.ts';
import { hashesOf } from '../../../src/recruitment/contact/address.ts';
import { keyedHash } from '../../../src/recruitment/prospects/keyed_hash.ts';
import { type Caller, type Json, type Rail, sql, startReceiver } from '../../harness.ts';
import { all_but_scans } from '../event_types.ts';
import type { Mailbox } from '../mailbox.ts';

const v1 = '/recruitment/v1';
const sent_at = '2026-11-20T09:00:00.000Z';

/** Who sends. */
export interface Sending {
  caller: Caller;
  brand_id: string;
  inbox_id: string;
  campaign_id: string;
}

export interface Outreach extends Sending {
  receiver: Awaited<ReturnType<typeof startReceiver>>;
}

/** Ids of what a prospect was sent. */
export interface Mailed {
  prospect_id: string;
  sequence_id: string;
  thread_id: string;
  message_id: string;
}

const nowhere = { host: 'mail.acme.example.com', port: 465, security: 'tls', username: 'grace', password: 'secret' };

/** An organization with a receiver of all events, a brand, an inbox and a campaign that sends. */
export async function openOutreach(
  rail: Rail,
  mailbox: Pick<Mailbox, 'smtp' | 'imap'> = { smtp: nowhere, imap: nowhere },
): Promise<Outreach> {
  const caller = await rail.organization();
  const { organization_id } = caller;
  const receiver = await startReceiver();
  await caller.post(`${v1}/webhook_endpoints`, { url: receiver.url, event_types: all_but_scans });
  const brand = await caller.post(`${v1}/brands`, {
    ...{ name: 'Acme', website_url: 'https://acme.example.com', sender_company: 'Acme <GmbH> & Co.' },
    ...{ postal_address: 'Hauptstr. 1, 10827 Berlin', privacy_url: 'https://acme.example.com/privacy' },
  });
  const inbox_id = newId('fin');
  const {
    smtp: { password: smtp_password, ...smtp },
    imap: { password: imap_password, ...imap },
  } = mailbox;
  const secrets = rail.services.vault.encrypt(JSON.stringify({ smtp_password, imap_password }), inbox_id);
  await rail.query(sql`
    insert into recruitment.inbox (organization_id, id, email, from_name, smtp, imap, secrets, daily_limit, min_gap_s, max_gap_s, timezone, connected_at)
    values (${organization_id}, ${inbox_id}, 'grace@acme.example.com', 'Grace', ${JSON.stringify(smtp)}::jsonb, ${JSON.stringify(imap)}::jsonb,
      ${secrets}, 40, 90, 300, 'UTC', ${sent_at})`);
  const campaign_id = await openCampaign(rail, { organization_id, brand_id: brand.id, inbox_id });
  return { caller, receiver, brand_id: brand.id, inbox_id, campaign_id };
}

interface Sender {
  organization_id: string;
  brand_id: string;
  inbox_id: string;
}

/** A campaign of two steps that sends once somebody is in it: the sweep finishes one that sends to nobody. @returns its id */
export async function openCampaign(rail: Rail, { organization_id, brand_id, inbox_id }: Sender): Promise<string> {
  const campaign_id = newId('fca');
  const steps = JSON.stringify([
    {
      ...{ id: newId('fst'), delay_days: 0, weight: 1, subject: 'Hello' },
      body_text: 'Hi',
      body_html: null,
      variants: [],
    },
    {
      ...{ id: newId('fst'), delay_days: 3, weight: 1, subject: '' },
      body_text: 'Hi again',
      body_html: null,
      variants: [],
    },
  ]);
  const schedule = JSON.stringify({ timezone: 'UTC', days: [1, 2, 3, 4, 5], from: '09:00', to: '17:00' });
  await rail.query(sql`
    insert into recruitment.campaign (organization_id, id, brand_id, name, inbox_ids, steps, schedule, max_per_domain_day, bounce_pause_bps,
      reply_wait_days, allow_risky, stop_for_company, state, counted_since, launched_at)
    values (${organization_id}, ${campaign_id}, ${brand_id}, 'Autumn', array[${inbox_id}], ${steps}::jsonb, ${schedule}::jsonb, 3, 300, 5,
      false, true, 'draft', ${sent_at}, ${sent_at})`);
  return campaign_id;
}

let nth = 0;

/** A new prospect with an address, whom the first email of the campaign was sent to. */
export async function mail(rail: Rail, outreach: Sending, given: Json = {}): Promise<Mailed & { email: string }> {
  const { caller, brand_id } = outreach;
  const key = `mailed${++nth}.com`;
  const email = given.email ?? `ada@${key}`;
  const prospect = await caller.post(`${v1}/prospects`, { brand_id, channel: 'website', key, email, ...given });
  return { ...(await sendTo(rail, outreach, prospect.id, email)), email };
}

/** The rows of a first email that was sent to a prospect. */
export async function sendTo(rail: Rail, outreach: Sending, prospect_id: string, email: string): Promise<Mailed> {
  const { caller, brand_id, inbox_id, campaign_id } = outreach;
  const { organization_id } = caller;
  const [sequence_id, thread_id, message_id] = [newId('fsq'), newId('fth'), newId('fms')];
  await within(rail, outreach, async (tx) => {
    const { address_hmac, domain_hmac } = hashesOf(await keyedHash(tx, rail.services.vault), email);
    await tx.all(sql`
      update recruitment.campaign set state = 'sending', finished_at = null
      where organization_id = ${organization_id} and id = ${campaign_id} and state in ('draft', 'finished')`);
    await tx.all(sql`
      insert into recruitment.sequence (organization_id, id, campaign_id, brand_id, prospect_id, inbox_id, address_hmac, domain_hmac, company_hmac,
        thread_id, state, next_step, due_at, last_sent_at)
      values (${organization_id}, ${sequence_id}, ${campaign_id}, ${brand_id}, ${prospect_id}, ${inbox_id}, ${address_hmac}, ${domain_hmac}, ${domain_hmac},
        ${thread_id}, 'active', 1, '2030-01-02T09:00:00Z', ${sent_at})`);
    await tx.all(sql`
      insert into recruitment.thread (organization_id, id, brand_id, prospect_id, inbox_id, campaign_id, sequence_id, subject, messages, last_message_at)
      values (${organization_id}, ${thread_id}, ${brand_id}, ${prospect_id}, ${inbox_id}, ${campaign_id}, ${sequence_id}, 'Hello', 1, ${sent_at})`);
    await tx.all(sql`
      insert into recruitment.message (organization_id, id, thread_id, brand_id, prospect_id, campaign_id, sequence_id, inbox_id, direction, purpose,
        state, step_index, variant, subject, body_text, rfc_message_id, address_hmac, domain_hmac, sent_at)
      values (${organization_id}, ${message_id}, ${thread_id}, ${brand_id}, ${prospect_id}, ${campaign_id}, ${sequence_id}, ${inbox_id}, 'outbound',
        'sequence', 'sent', 0, 0, 'Hello', 'Hi', ${`${message_id}@acme.example.com`}, ${address_hmac}, ${domain_hmac}, ${sent_at})`);
    await tx.all(sql`
      update recruitment.prospect set sent = sent + 1, last_sent_at = ${sent_at}, stage = 'contacted'
      where organization_id = ${organization_id} and id = ${prospect_id}`);
  });
  return { prospect_id, sequence_id, thread_id, message_id };
}

/** A reply in the thread of what was sent. @returns its id */
export async function replyTo(
  rail: Rail,
  outreach: Sending,
  to: Mailed,
  email: string,
  given: Json = {},
): Promise<string> {
  const { caller, brand_id, inbox_id, campaign_id } = outreach;
  const { organization_id } = caller;
  const { purpose = 'reply', reply_kind = 'question', needs_review = false, text = 'What do you pay?' } = given;
  const message_id = newId('fms');
  await within(rail, outreach, async (tx) => {
    const { address_hmac, domain_hmac } = hashesOf(await keyedHash(tx, rail.services.vault), email);
    await tx.all(sql`
      insert into recruitment.message (organization_id, id, thread_id, brand_id, prospect_id, campaign_id, sequence_id, inbox_id, direction, purpose,
        state, subject, body_text, rfc_message_id, in_reply_to, reference_ids, address_hmac, domain_hmac, reply_kind, confidence, needs_review, language_code, received_at)
      values (${organization_id}, ${message_id}, ${to.thread_id}, ${brand_id}, ${to.prospect_id}, ${campaign_id}, ${to.sequence_id}, ${inbox_id}, 'inbound',
        ${purpose}, 'received', 'Re: Hello', ${text}, ${`${message_id}@their.example.com`}, ${`${to.message_id}@acme.example.com`},
        array[${`${to.message_id}@acme.example.com`}], ${address_hmac}, ${domain_hmac}, ${purpose === 'reply' ? reply_kind : null},
        ${purpose === 'reply' ? 0.5 : null}, ${needs_review}, 'en', ${tx.now})`);
    if (purpose !== 'reply') return;
    await tx.all(sql`
      update recruitment.thread set messages = messages + 1, reply_kind = ${reply_kind}, needs_review = needs_review or ${needs_review},
        last_message_at = ${tx.now}, last_reply_at = ${tx.now}
      where organization_id = ${organization_id} and id = ${to.thread_id}`);
    await tx.all(sql`
      update recruitment.prospect set replies = replies + 1 where organization_id = ${organization_id} and id = ${to.prospect_id}`);
    await tx.all(sql`
      update recruitment.sequence set state = 'replied', ended_at = ${tx.now} where organization_id = ${organization_id} and id = ${to.sequence_id}`);
  });
  return message_id;
}

export const within = <T>(
  rail: Rail,
  { caller: { organization_id } }: Pick<Sending, 'caller'>,
  work: (tx: Tx) => Promise<T>,
): Promise<T> => transaction(rail.store, { organization_id, request_id: null }, work);
