import { z } from 'zod';
import type { EventPolicy } from '../webhooks/events/policy.ts';
import { base_path } from './events/base_path.ts';
import { catalogue, prefixes } from './events/catalogue.ts';
import { chatText } from './events/chat_text.ts';
import { requireFeature } from './plan/plan.ts';

/** The settings of the recruitment service's webhooks. */
export const events: EventPolicy = {
  product: 'recruitment',
  path: base_path,
  namespace: 'recruitment_',
  catalogue,
  ...prefixes,
  subject: null,
  owner: null,
  envelope: ({ id, type, created_at, data, livemode }) => ({ id, type, version: 1, created_at, livemode, data }),
  envelope_fields: {
    version: z.literal(1).describe('The version of the payload. Its keys do not change without a new one.'),
    livemode: z.boolean().describe('False for a test event.'),
  },
  envelope_doc:
    '`version` is 1 for every event: the keys of a payload do not change without a new one. `livemode` is false for a test event, whose `id` begins with `evt_test_`. Every event of a type has the same keys in `data`; a field without a value is null.',
  https_only: true,
  endpoint_types: ['live', 'test', 'slack', 'discord', 'teams'],
  chatText,
  retries: 'every_minute',
  names_requests: false,
  lists_all: false,
  requireIncluded: (tx) => requireFeature(tx, 'webhooks'),
  most_in_log: 50,
};
