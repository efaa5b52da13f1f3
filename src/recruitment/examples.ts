import type { Examples } from '../core/description/example.ts';
import { sampleId } from '../core/values/fields.ts';
import { catalogue } from './events/catalogue.ts';
import { included } from './plan/limits.ts';

const times = { endpoint: '2026-11-20T08:00:00.000Z', event: '2026-11-21T09:30:00.000Z' };

const endpoint = {
  ...{ id: sampleId('fwe'), type: 'live', url: 'https://hooks.example.com/recruitment', description: 'Sales team' },
  ...{ event_types: [], status: 'enabled', disabled_reason: null, secret_last_rotated_at: null },
  ...{ created_at: times.endpoint, updated_at: times.endpoint },
};
const event = {
  ...{ id: sampleId('fev'), type: 'reply.received', version: 1, created_at: times.event, livemode: true },
  data: catalogue['reply.received'].example,
};
const test_id = sampleId('evt').replace('sample_evt_', 'evt_test_');
const delivery = {
  ...{ id: sampleId('fwd'), endpoint_id: endpoint.id, event_id: event.id, event_type: event.type },
  ...{ status: 'delivered', attempt: 1, next_attempt_at: null, replay_of: null, request_body: JSON.stringify(event) },
  attempts: [
    { ...{ attempt: 1, at: times.event, duration_ms: 84, status_code: 200 }, ...{ response_body: 'ok', error: null } },
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
  ...{ scan_weekday: 1, scan_ceiling_minor: 500, retention_days: 180, last_scan_at: times.event },
  ...{ created_at: times.endpoint, updated_at: times.endpoint },
};
const team_member = {
  ...{ id: sampleId('tm'), user_id: sampleId('usr'), name: 'Grace Hopper', email: 'grace@acme.example.com' },
  ...{ role: 'member', status: 'invited', created_at: times.endpoint, updated_at: times.endpoint },
};

/** Values for the examples of the description. */
export const examples: Examples = {
  records: { brand, team_member, webhook_endpoint: endpoint, webhook_delivery: delivery, plan, credit_entry },
  operations: {
    'brands.update': { body: { retention_days: 90 }, reply: { retention_days: 90, updated_at: times.event } },
    'team.update': { body: { role: 'admin' }, reply: { role: 'admin', updated_at: times.event } },
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
  values: {},
};
