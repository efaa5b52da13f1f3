import { z } from 'zod';
import { refusingTestKeys } from '../core/resource/operation.ts';
import type { EventPolicy } from '../webhooks/events/policy.ts';
import { webhooksOf } from '../webhooks/operations.ts';
import type { Product } from '../webhooks/product.ts';
import { catalogue, prefixes } from './events/catalogue.ts';
import { chatText } from './events/chat_text.ts';
import { examples } from './examples.ts';
import { guide, test_keys } from './guide.ts';

const events: EventPolicy = {
  product: 'recruitment',
  path: '/recruitment/v1',
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
  most_in_log: 50,
};

/** The recruitment service. */
export const recruitment: Product = {
  name: 'recruitment',
  title: 'Rail Recruitment',
  summary: 'Recruiting affiliates: signed webhooks of the service that finds prospects and writes to them.',
  guide,
  test_keys,
  examples,
  events,
  operations: webhooksOf(events).map(refusingTestKeys),
  scopes: ['recruitment_webhooks:read', 'recruitment_webhooks:write'],
  schedules: [],
  encrypted: [],
  audits: [],
};
