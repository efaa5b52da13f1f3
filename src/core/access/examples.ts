import { sampleId } from '../values/fields.ts';

const created_at = '2026-11-02T09:00:00.000Z';
const changed_at = '2026-11-21T09:30:00.000Z';
const secret = 'rail_live_c2FtcGxlLWtleS1zYW1wbGUta2V5LXNhbXBsZS1rZXk';

const api_key = {
  ...{
    id: sampleId('key'),
    name: 'Checkout',
    mode: 'live',
    status: 'active',
    scopes: ['customers:write', 'sales:write'],
  },
  ...{ rate_limit: 25, ip_ranges: ['203.0.113.0/24'], signature_required: false, user_id: null, expires_at: null },
  ...{ previous_secret_expires_at: null, last_used_at: null, revoked_at: null, created_at, updated_at: created_at },
};

const audit_entry = {
  ...{ id: sampleId('aud'), api_key_id: sampleId('key'), user_id: null, operation: 'partners.update' },
  ...{ object_id: sampleId('part'), fields: ['status', 'suspension_reason'], request_id: sampleId('req') },
  created_at: changed_at,
};

const user = {
  ...{ id: sampleId('usr'), email: 'grace@acme.example.com', name: 'Grace Hopper', role: 'member', status: 'active' },
  ...{ created_at, updated_at: created_at },
};

/** The records of the examples of this room, by their objects. */
export const access_records = { api_key, audit_entry, user };

/** The examples of its operations. */
export const access_operations = {
  'users.create': { body: { email: user.email, name: user.name } },
  'users.update': { body: { name: 'Grace B. Hopper' }, reply: { name: 'Grace B. Hopper', updated_at: changed_at } },
  'api_keys.create': {
    body: { name: api_key.name, scopes: api_key.scopes, ip_ranges: api_key.ip_ranges },
    reply: { secret },
  },
  'api_keys.update': {
    body: { scopes: ['sales:write'], expires_at: '2026-12-21T09:30:00.000Z' },
    reply: { scopes: ['sales:write'], expires_at: '2026-12-21T09:30:00.000Z', updated_at: changed_at },
  },
  'api_keys.rotate': {
    body: { overlap_hours: 24 },
    reply: { secret, previous_secret_expires_at: '2026-11-22T09:30:00.000Z', updated_at: changed_at },
  },
  'api_keys.revoke': { reply: { status: 'revoked', revoked_at: changed_at, updated_at: changed_at } },
};
