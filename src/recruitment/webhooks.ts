import { z } from 'zod';
import type { EmittedEvent } from '../core/postgres/transaction.ts';
import type { EventPolicy } from '../webhooks/events/policy.ts';
import { base_path } from './events/base_path.ts';
import { catalogue, prefixes } from './events/catalogue.ts';
import { requireFeature } from './plan/plan.ts';

type Fields = Record<string, unknown>;

/** Types that have a text of their own in a team chat: ids and counts alone, as the events themselves. */
const texts: Record<string, (data: Fields) => string> = {
  // A reply to an invitation, or to a person's own email, belongs to no campaign.
  'reply.received': ({ reply_kind, prospect_id, campaign_id }) =>
    `A prospect replied (${words(reply_kind)}): prospect ${prospect_id}${campaign_id === null ? '' : `, campaign ${campaign_id}`}`,
  'deal.agreed': ({ deal_id }) => `A deal was agreed: ${deal_id}`,
  'search.completed': ({ found }) => `A search finished: ${found} new ${found === 1 ? 'prospect' : 'prospects'}`,
};

/** Returns the text about an event for a team chat: a dedicated text, or a line with the event's name. */
const chatText = ({ type, data }: Pick<EmittedEvent, 'type' | 'data'>): string =>
  texts[type]?.(data as Fields) ?? `Event: ${type}`;

const words = (value: unknown): string => String(value).replaceAll('_', ' ');

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
