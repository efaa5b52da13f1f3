import type { Examples } from '../core/description/example.ts';
import { sampleId } from '../core/values/fields.ts';
import { catalogue } from './events/catalogue.ts';
import { included } from './plan/limits.ts';

const times = { endpoint: '2026-11-20T08:00:00.000Z', event: '2026-11-21T09:30:00.000Z' };

const endpoint = {
  ...{ id: sampleId('fwe'), type: 'live', url: 'https://hooks.example.com/recruitment', description: 'Sales team' },
  ...{ event_types: [], personal_data: true, status: 'enabled', disabled_reason: null, secret_last_rotated_at: null },
  ...{ created_at: times.endpoint, updated_at: times.endpoint },
};
const event = {
  ...{ id: sampleId('fev'), type: 'reply.received', version: 1, created_at: times.event, livemode: true },
  data: catalogue['reply.received'].example,
};
const test_id = sampleId('evt').replace('sample_evt_', 'evt_test_');
const sent_at = String(Date.parse(times.event) / 1000);
const rail_signature = `t=${sent_at},v1=${'4f9c1e7a'.repeat(8)}`;
const webhook_signature = `v1,${'Zm9yIHRo'.repeat(5)}aXM=`;
const delivery = {
  ...{ id: sampleId('fwd'), endpoint_id: endpoint.id, event_id: event.id, event_type: event.type },
  ...{ status: 'delivered', attempt: 1, next_attempt_at: null, replay_of: null, request_body: JSON.stringify(event) },
  attempts: [
    {
      ...{ attempt: 1, at: times.event, duration_ms: 84, status_code: 200, response_body: 'ok', error: null },
      url: endpoint.url,
      request_headers: {
        ...{ 'Content-Type': 'application/json', 'User-Agent': 'Rail-Webhooks/1.0', 'Rail-Signature': rail_signature },
        ...{ 'Rail-Event': event.type, 'Rail-Event-Id': event.id },
        ...{ 'Rail-Delivery-Id': sampleId('fwd'), 'Rail-Attempt': '1' },
        ...{ 'webhook-id': event.id, 'webhook-timestamp': sent_at, 'webhook-signature': webhook_signature },
      },
    },
  ],
  ...{ created_at: times.event, updated_at: times.event },
};
const queued = { status: 'pending', attempt: 0, attempts: [] };
const ping = { ...event, id: test_id, livemode: false };
const secret = 'whsec_c2FtcGxlLXNlY3JldC1zYW1wbGUtc2VjcmV0';

const plan = {
  ...{ object: 'plan', name: 'grow', ...included.grow, spending_ceiling_minor: 5_000, spent_minor: 0, currency: 'USD' },
  credits: { balance: 699, spent: 1, refunded: 0, resets_at: '2026-12-01T00:00:00.000Z' },
};
const credit_entry = {
  ...{ id: sampleId('fcr'), kind: 'spend', amount: -1, balance: 699, reason: 'search', search_id: sampleId('fsc') },
  ...{ scan_id: null, prospect_id: null, created_at: times.event },
};

const brand = {
  ...{ id: sampleId('fbr'), name: 'Acme Bakeware', website_url: 'https://acme.example.com/', keywords: ['sourdough'] },
  ...{ competitors: ['rival.example.com'], languages: ['en', 'de'], countries: ['US', 'DE'], channels: ['website'] },
  ...{ program_id: sampleId('prg'), sender_company: 'Acme GmbH', postal_address: 'Hauptstr. 1, 10827 Berlin, Germany' },
  ...{ privacy_url: 'https://acme.example.com/privacy', default_timezone: 'Europe/Berlin', scan_schedule: 'weekly' },
  ...{ scan_weekday: 1, scan_ceiling_minor: 500, currency: 'USD', retention_days: 180, last_scan_at: times.event },
  ...{ created_at: times.endpoint, updated_at: times.endpoint },
};
const team_member = {
  ...{ id: sampleId('tm'), user_id: sampleId('usr'), name: 'Grace Hopper', email: 'grace@acme.example.com' },
  ...{ role: 'member', status: 'invited', created_at: times.endpoint, updated_at: times.endpoint },
};

const prospect = {
  ...{
    id: sampleId('fdi'),
    brand_id: brand.id,
    channel: 'website',
    key: 'baking.example.com',
    name: 'The Baking Blog',
  },
  ...{ url: 'https://baking.example.com/', description: 'Recipes and tests of kitchen appliances.' },
  ...{ country_code: 'US', language_code: 'en', timezone: 'America/New_York', followers: 12_500, score: 86 },
  evidence: [
    { kind: 'competitor_link', url: 'https://baking.example.com/best-tins', text: 'Links to rival.example.com' },
  ],
  ...{ source: 'manual', source_run_id: null, stage: 'contacted', saved: true, hidden: false, hidden_reason: null },
  ...{ assignee_member_id: team_member.id, do_not_contact: null, unsubscribed_at: null, invited_at: null },
  ...{
    invitation_token: null,
    signed_up_at: null,
    partner_id: null,
    deal_id: null,
    email_status: 'found',
    custom: { tier: 'gold' },
  },
  ...{ created_at: times.endpoint, updated_at: times.event },
};
const prospect_id = prospect.id;
const invitation_token = '0f8e7d6c5b4a39281706f5e4d3c2b1a0';

const search = {
  ...{ id: sampleId('fsc'), brand_id: brand.id, search_type: 'keyword', query: 'sourdough baking blog' },
  ...{ competitor_domain: null, like_prospect_id: null, channels: ['website'], countries: ['US'], languages: ['en'] },
  ...{ max_results: 100, ceiling_minor: 50, providers: null },
  filters: {
    ...{ one_per_domain: true, skip_contacted_days: 90, skip_unsubscribed: true },
    ...{ skip_in_campaigns: true, skip_homepages: false },
  },
  ...{
    state: 'done',
    error: null,
    results_count: 60,
    found: 42,
    spent_minor: 2,
    currency: 'USD',
    credit_refunded: false,
  },
  ...{ scan_id: sampleId('fsc').replace(/.$/, '4'), started_at: times.event, finished_at: times.event },
  ...{ created_at: times.event, updated_at: times.event },
};
const started = { state: 'queued', results_count: 0, found: 0, spent_minor: 0, scan_id: null };
const search_result = {
  ...{ id: sampleId('fsr'), search_id: search.id, provider: 'brave', url: 'https://baking.example.com/best-tins' },
  ...{ title: 'The best tins', description: 'We tested twelve tins.', channel: 'website', key: prospect.key },
  ...{ prospect_id, outcome: 'new', skipped_because: null, created_at: times.event },
};
const scan = {
  ...{ id: search.scan_id, brand_id: brand.id, trigger: 'search', search_id: search.id, state: 'done', error: null },
  ...{
    found: 17,
    visits: 60,
    visits_left: 0,
    ceiling_minor: null,
    spent_minor: 0,
    currency: 'USD',
    credit_refunded: false,
  },
  ...{ finished_at: times.event, created_at: times.event, updated_at: times.event },
};
const search_provider = {
  ...{ object: 'search_provider', name: 'brave', configured_by: 'organization', hint: 'c3d4', warnings: [] },
  ...{ page_price_micros: 5_000, page_units: null, updated_at: times.endpoint },
};
const reveal = {
  ...{ object: 'reveal', prospect_id, state: 'found', addresses: 2, pages: 4, reason: null, credit_taken: true },
  ...{ credit_refunded: false, created_at: times.event, finished_at: times.event },
};
const list = {
  ...{ id: sampleId('fls'), brand_id: brand.id, name: 'Favourites', description: 'Those we write to first' },
  ...{ created_at: times.endpoint, updated_at: times.endpoint },
};
const import_ = {
  ...{ id: sampleId('fim'), brand_id: brand.id, state: 'done', format: 'csv', dry_run: false, update_existing: false },
  ...{ mapping: { Blog: 'url', Owner: 'name', Mail: 'email' }, total: 3, created: 1, updated: 0, unchanged: 1 },
  ...{
    refused: 1,
    errors: [{ line: 4, field: 'url', reason: 'does not identify a prospect in the channel website' }],
    error: null,
  },
  ...{ started_at: times.event, finished_at: times.event, created_at: times.event, updated_at: times.event },
};
const import_error = {
  ...{ id: sampleId('fie'), import_id: import_.id, ...import_.errors[0], created_at: times.event },
};
const note = {
  ...{ id: sampleId('fcn'), prospect_id, author_user_id: team_member.user_id, author_member_id: team_member.id },
  ...{ text: 'Answers on Mondays.', created_at: times.event, updated_at: times.event },
};
const email_address = {
  ...{ id: sampleId('fea'), prospect_id, email: 'ada@baking.example.com', rank: 0, source: 'manual', source_url: null },
  ...{ verification: 'unknown', suppressed: false, found_at: times.endpoint, used_at: null, bounced_at: null },
  created_at: times.endpoint,
};
const do_not_contact_entry = {
  ...{ id: sampleId('fdn'), kind: 'address', value: 'grace@rival.example.com', prospect_id: null, reason: 'legal' },
  ...{ by_user_id: team_member.user_id, created_at: times.event, updated_at: times.event },
  ...{ lifted_at: null, lift_reason: null },
  lifted_by_user_id: null,
};
const activity = {
  ...{ id: sampleId('fac'), prospect_id, kind: 'stage_changed', by_user_id: team_member.user_id },
  ...{ by_member_id: team_member.id, data: { from: 'found', to: 'contacted', reason: 'manual' } },
  created_at: times.event,
};
const inbox = {
  ...{ id: sampleId('fin'), email: 'grace@acme.example.com', from_name: 'Grace from Acme' },
  smtp: { host: 'smtp.acme.example.com', port: 465, security: 'tls', username: 'grace@acme.example.com' },
  imap: { host: 'imap.acme.example.com', port: 993, security: 'tls', username: 'grace@acme.example.com' },
  ...{ oauth: null, daily_limit: 40, ramp: { start: 10, step: 2 }, min_gap_s: 90, max_gap_s: 300, reply_to: null },
  ...{ signature: 'Grace Hopper, Acme Bakeware', timezone: 'Europe/Berlin', authserv_id: null, status: 'connected' },
  ...{ disconnected_reason: null, connected_at: times.endpoint, disconnected_at: null },
  ...{ created_at: times.endpoint, updated_at: times.endpoint },
};
const deal = {
  ...{
    id: sampleId('fdl'),
    brand_id: brand.id,
    prospect_id,
    program_id: brand.program_id,
    status: 'agreed',
    version: 2,
  },
  terms: {
    ...{ rate_type: 'percent', rate_value: 2000, currency: 'USD', recurring_months: 12, group_id: null },
    ...{ coupon_code: 'BAKING10', upfront_fee_minor: 25_000, starts_on: '2026-12-01', ends_on: null },
    text: 'Two posts before Christmas.',
  },
  ...{ agreed_version: 2, agreed_by: 'member', agreed_by_user_id: team_member.user_id, agreed_at: times.event },
  ...{ partner_id: null, rule_id: null, linked_existing: null, bonus_id: null, activated_at: null, cancelled_at: null },
  ...{ last_error: null, created_at: times.endpoint, updated_at: times.event },
};
const draft = {
  ...{ status: 'draft', version: 1, agreed_version: null, agreed_by: null, agreed_by_user_id: null, agreed_at: null },
  updated_at: times.endpoint,
};
const deal_version = {
  ...{ id: sampleId('fdv'), deal_id: deal.id, version: 2, terms: deal.terms, created_by_user_id: team_member.user_id },
  created_at: times.endpoint,
};
const step = {
  ...{ id: sampleId('fst'), delay_days: 0, weight: 1, subject: 'Your review of baking tins' },
  body_text: 'Hello {{ prospect.name | default: "there" }},\n\nwould you like to try ours?\n\nGrace, {{ brand.name }}',
  body_html: null,
  variants: [],
};
const follow_up = {
  ...{ ...step, id: sampleId('fst').replace(/.$/, '4'), delay_days: 3 },
  body_text: 'Hello again,\n\nmay I send you a sample?\n\nGrace',
};
const campaign = {
  ...{ id: sampleId('fca'), brand_id: brand.id, name: 'Baking blogs', inbox_ids: [inbox.id], steps: [step, follow_up] },
  schedule: { timezone: 'recipient', days: [1, 2, 3, 4, 5], from: '09:00', to: '17:00' },
  ...{ daily_new_limit: 50, max_per_domain_day: 3, bounce_pause_bps: 300, reply_wait_days: 5, allow_risky: false },
  ...{ stop_for_company: true, state: 'draft', pause_causes: [], pause_reason: null, start_at: null },
  ...{ launch_error: null, launched_at: null, paused_at: null, stopped_at: null, finished_at: null },
  ...{ created_at: times.endpoint, updated_at: times.endpoint },
};
const started_campaign = { launched_at: times.endpoint, updated_at: times.event };
const text_counts = {
  ...{ sent: 102, delivered: 100, bounced: 2, failed: 1, unknown: 0, unsubscribed: 3 },
  replies: { positive: 5, question: 3, not_now: 2, negative: 4, wrong_person: 1, angry: 0 },
};
const asked_steps = campaign.steps.map(({ id, ...rest }) => rest);
const campaign_addition = {
  ...{ id: sampleId('fad'), campaign_id: campaign.id, list_id: list.id, state: 'done', total: 120, added: 118 },
  ...{ refused: { already_in_campaign: 1, unsubscribed: 1 }, error: null, finished_at: times.event },
  ...{ created_at: times.event, updated_at: times.event },
};
const sequence = {
  ...{ id: sampleId('fsq'), brand_id: brand.id, campaign_id: campaign.id, prospect_id, inbox_id: inbox.id },
  ...{ thread_id: sampleId('fth'), state: 'active', pause_causes: [], next_step: 1, paused_until: null },
  ...{ due_at: '2026-11-24T09:12:00.000Z', failed_reason: null, last_sent_at: times.event, ended_at: null },
  ...{ created_at: times.endpoint, updated_at: times.event },
};
const message = {
  ...{ id: sampleId('fms'), brand_id: brand.id, prospect_id, thread_id: sequence.thread_id },
  ...{ campaign_id: sequence.campaign_id, sequence_id: sequence.id, inbox_id: inbox.id },
  ...{ direction: 'inbound', purpose: 'reply', state: 'received', step_index: null, variant: null },
  ...{ subject: 'Re: Your sourdough guide', body_text: 'Sounds good. What commission do you pay?', body_html: null },
  ...{ reply_kind: 'positive', confidence: 0.93, needs_review: false, language_code: 'en', named: null },
  ...{
    failed_reason: null,
    server_answer: null,
    sent_at: null,
    bounced_at: null,
    bounce_reason: null,
    received_at: times.event,
  },
  ...{ created_at: times.event, updated_at: times.event },
};
const thread = {
  ...{ id: sequence.thread_id, brand_id: brand.id, prospect_id, inbox_id: inbox.id },
  ...{ campaign_id: sequence.campaign_id, sequence_id: sequence.id, subject: 'Your sourdough guide', messages: 2 },
  ...{ reply_kind: 'positive', needs_review: false, last_message_at: times.event, last_reply_at: times.event },
  ...{ created_at: times.endpoint, updated_at: times.event },
};
const outcomes = { data: [{ prospect_id, status: 'done', error: null }] };
const sample_id = 'sample_fdi_01';

/** Values for the examples of the description. */
export const examples: Examples = {
  records: {
    ...{ brand, team_member, prospect, list, note, email_address, do_not_contact_entry, activity },
    ...{ inbox, sequence, message, thread, deal, deal_version },
    ...{ import: import_, import_error },
    ...{ search, search_result, scan, search_provider, reveal },
    ...{ campaign, campaign_addition },
    ...{ webhook_endpoint: endpoint, webhook_delivery: delivery, plan, credit_entry },
  },
  operations: {
    'brands.update': { body: { retention_days: 90 }, reply: { retention_days: 90, updated_at: times.event } },
    'team.update': { body: { role: 'admin' }, reply: { role: 'admin', updated_at: times.event } },
    'searches.create': {
      body: {
        ...{ brand_id: brand.id, search_type: 'keyword', query: search.query, channels: search.channels },
        ...{ countries: search.countries, languages: search.languages, max_results: 100, ceiling_minor: 50 },
        filters: search.filters,
      },
      reply: { ...started, started_at: null, finished_at: null },
    },
    'searches.cancel': { reply: { ...started, state: 'cancelled', credit_refunded: true, started_at: null } },
    'scans.create': {
      body: { brand_id: brand.id },
      reply: {
        trigger: 'manual',
        search_id: null,
        state: 'running',
        found: 0,
        visits: 0,
        ceiling_minor: 500,
        finished_at: null,
      },
    },
    'prospects.reveal': { reply: { state: 'queued', addresses: 0, pages: 0, finished_at: null } },
    'prospects.create': {
      body: { ...{ brand_id: brand.id, channel: 'website', key: prospect.key }, email: email_address.email },
      reply: { stage: 'found', saved: false, assignee_member_id: null, evidence: [], score: null, custom: {} },
    },
    'prospects.import': {
      reply: {
        ...{ state: 'queued', created: 0, unchanged: 0, refused: 0, errors: [], started_at: null, finished_at: null },
      },
    },
    'prospects.update': { body: { custom: prospect.custom } },
    'prospects.save': { body: { list_id: list.id } },
    'prospects.unsave': { body: {}, reply: { saved: false } },
    'prospects.hide': { body: { reason: 'competitor' }, reply: { hidden: true, hidden_reason: 'competitor' } },
    'prospects.move': { body: { stage: 'contacted', reason: 'Met at a fair' } },
    'prospects.assign': { body: { member_id: team_member.id } },
    'prospects.invite': { body: { via: 'mark' }, reply: { invited_at: times.event, invitation_token } },
    'prospects.signed_up': {
      reply: { stage: 'active', invited_at: times.endpoint, invitation_token, signed_up_at: times.event },
    },
    'prospects.do_not_contact': {
      body: { reason: 'legal' },
      reply: { do_not_contact: { reason: 'legal', since: times.event } },
    },
    'prospects.lift_do_not_contact': { body: { reason: 'mistake' } },
    'prospects.bulk': { body: { action: 'move', prospect_ids: [prospect_id], stage: 'contacted' }, reply: outcomes },
    'lists.add_prospects': { body: { prospect_ids: [prospect_id] }, reply: outcomes },
    'search_providers.delete': { reply: { id: search_provider.name } },
    'emails.create': { body: { email: email_address.email } },
    'do_not_contact.create': { body: { kind: 'address', email: do_not_contact_entry.value, reason: 'legal' } },
    'do_not_contact.lift': {
      body: { reason: 'mistake' },
      reply: { lifted_at: times.event, lift_reason: 'mistake', lifted_by_user_id: team_member.user_id },
    },
    'sample_prospects.list': {
      reply: { data: [{ ...prospect, id: sample_id, object: 'prospect', source: 'sample' }], total_count: 12 },
    },
    'deals.create': { body: { prospect_id, program_id: deal.program_id, terms: deal.terms }, reply: draft },
    'deals.update': {
      body: { terms: { rate_value: 2500 } },
      reply: { ...draft, version: 2, terms: { ...deal.terms, rate_value: 2500 }, updated_at: times.event },
    },
    'deals.agree': { body: { agreed_by: 'prospect' }, reply: { agreed_by: 'prospect' } },
    'deals.activate': { reply: { status: 'activating' } },
    'deals.cancel': { reply: { ...draft, status: 'cancelled', cancelled_at: times.event, updated_at: times.event } },
    'deals.reopen': { reply: { ...draft, version: 2, updated_at: times.event } },
    'sequences.pause': { reply: { state: 'paused', pause_causes: ['user'] } },
    'sequences.stop': { reply: { state: 'stopped', due_at: null, ended_at: times.event } },
    'prospects.reply': {
      body: { text: 'We pay 20 % for 12 months. Shall I send you the terms?' },
      reply: {
        ...{ direction: 'outbound', purpose: 'answer', state: 'planned', campaign_id: null, sequence_id: null },
        ...{ subject: 'Re: Your sourdough guide', reply_kind: null, confidence: null, language_code: null },
        ...{ body_text: 'We pay 20 % for 12 months. Shall I send you the terms?', received_at: null },
      },
    },
    'messages.resend': {
      reply: {
        ...{ direction: 'outbound', purpose: 'sequence', state: 'planned', reply_kind: null, confidence: null },
        ...{ language_code: null, received_at: null },
      },
    },
    'messages.reclassify': { body: { reply_kind: 'question' }, reply: { reply_kind: 'question', confidence: 1 } },
    'inboxes.create': {
      body: {
        ...{ email: inbox.email, from_name: inbox.from_name },
        smtp: { ...inbox.smtp, password: 'app-password' },
        imap: { ...inbox.imap, password: 'app-password' },
        ...{ signature: inbox.signature, timezone: inbox.timezone },
      },
    },
    'inboxes.update': { body: { daily_limit: 60 }, reply: { daily_limit: 60, updated_at: times.event } },
    'inboxes.test': { reply: { object: 'inbox_test', ok: true } },
    'inboxes.disconnect': {
      reply: { status: 'disconnected', disconnected_reason: 'disabled', disconnected_at: times.event },
    },
    'inboxes.health': {
      reply: {
        ...{
          inbox_id: inbox.id,
          sent_today: 12,
          limit_today: 34,
          bounce_bps_28d: 85,
          blocked_28d: 1,
          complaints_28d: 0,
          unknown_28d: 0,
          queue: 3,
        },
        spf: {
          ...{ status: 'pass', record: 'v=spf1 a:smtp.acme.example.com ~all' },
          detail: 'The SPF record of acme.example.com lets smtp.acme.example.com send.',
        },
        dkim: {
          ...{ status: 'pass', record: 'v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA' },
          detail: 'acme.example.com has a valid DKIM key at the selector `default`.',
        },
        dmarc: {
          ...{ status: 'missing', record: null },
          detail:
            'acme.example.com has no DMARC record. Add the TXT record `v=DMARC1; p=none; rua=mailto:dmarc@example.com` at `_dmarc.example.com`.',
        },
        imap_last_seen: times.event,
        imap_answer: null,
      },
    },
    'inboxes.reconnect': { reply: { connected_at: times.event } },
    'campaigns.create': {
      body: {
        ...{ brand_id: brand.id, name: campaign.name, inbox_ids: campaign.inbox_ids, steps: asked_steps },
        ...{ schedule: campaign.schedule, daily_new_limit: campaign.daily_new_limit },
      },
    },
    'campaigns.update': { body: { daily_new_limit: 80 }, reply: { daily_new_limit: 80, updated_at: times.event } },
    'campaigns.preview': {
      body: { prospect_id, step_index: 0, variant: 0 },
      reply: {
        ...{ object: 'campaign_preview', inbox_id: inbox.id, step_index: 0, variant: 0, to: email_address.email },
        ...{ subject: step.subject, headers: [{ name: 'Subject', value: step.subject }] },
        text: 'Hello The Baking Blog,\n\nwould you like to try ours?\n\nGrace, Acme Bakeware\n\n---\nSent by: Acme GmbH',
        ...{ html: null, raw: `Subject: ${step.subject}\r\n\r\nHello The Baking Blog, …` },
      },
    },
    'campaigns.preflight': {
      reply: {
        ...{ object: 'campaign_preflight', ok: true, blocking: [], prospects: 120, reachable: 119, rendered: 120 },
        ...{ emails: 238, days: 5 },
        warnings: [
          {
            ...{
              code: 'no_address',
              message: 'No usable address is known. These prospects fail. Reveal or add addresses.',
            },
            ...{ field: null, prospects: 1, prospect_ids: [prospect_id] },
          },
        ],
      },
    },
    'campaigns.test': {
      body: { member_id: team_member.id, step_index: 0 },
      reply: {
        ...{ direction: 'outbound', purpose: 'test', state: 'planned', prospect_id: null, thread_id: null },
        ...{
          sequence_id: null,
          subject: step.subject,
          body_text: 'Hello The Baking Blog,\n\nwould you like to try ours?',
        },
        ...{ reply_kind: null, confidence: null, language_code: null, sent_at: null, received_at: null },
      },
    },
    'campaigns.stats': {
      reply: {
        ...{ object: 'campaign_stats', campaign_id: campaign.id },
        steps: [
          {
            ...{ step_index: 0, step_id: step.id, ...text_counts, winner: null },
            variants: [
              {
                ...{ variant: 0, subject: step.subject, ...text_counts, positive_bps: 500 },
                ...{ positive_low_bps: 215, positive_high_bps: 1118 },
              },
            ],
          },
        ],
      },
    },
    'campaigns.launch': { body: {}, reply: { state: 'sending', ...started_campaign } },
    'campaigns.pause': {
      reply: { state: 'paused', pause_causes: ['user'], ...started_campaign, paused_at: times.event },
    },
    'campaigns.resume': { reply: { state: 'sending', ...started_campaign } },
    'campaigns.stop': { reply: { state: 'stopped', ...started_campaign, stopped_at: times.event } },
    'campaigns.add_prospects': {
      body: { list_id: list.id },
      reply: { state: 'queued', added: 0, refused: {}, finished_at: null },
    },
    'plan.update': { body: { spending_ceiling_minor: plan.spending_ceiling_minor } },
    'recruitment_webhook_endpoints.create': {
      body: { url: endpoint.url, type: 'live', description: endpoint.description },
      reply: { secret },
    },
    'recruitment_webhook_endpoints.update': { body: { description: 'Sales and support' } },
    'recruitment_webhook_endpoints.rotate_secret': { reply: { secret, secret_last_rotated_at: times.event } },
    'recruitment_webhook_endpoints.disable': { reply: { status: 'disabled', disabled_reason: 'disabled_by_hand' } },
    'recruitment_webhook_endpoints.ping': {
      body: { event_type: event.type },
      reply: { ...queued, event_id: test_id, request_body: JSON.stringify(ping) },
    },
    'recruitment_webhook_deliveries.replay': {
      reply: { ...queued, id: sampleId('fwd').replace(/.$/, '4'), replay_of: delivery.id },
    },
  },
  event_times: Object.fromEntries(Object.keys(catalogue).map((type) => [type, times.event])),
  values: {
    secret,
    text: note.text,
    id: brand.id,
    object: 'brand',
    type: 'reply.received',
    description: list.description,
  },
};
