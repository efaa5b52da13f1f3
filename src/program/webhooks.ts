import { z } from 'zod';
import type { EventPolicy } from '../webhooks/events/policy.ts';
import { catalogue, prefixes } from './events/catalogue.ts';
import { partners } from './partners/partner.ts';
import { programs } from './programs/program.ts';

/** The settings of the webhooks of affiliate programs. */
export const events: EventPolicy = {
  product: 'program',
  path: '/v1',
  namespace: '',
  catalogue,
  ...prefixes,
  endpoint_prefix: 'whe',
  subject: { field: 'program_id', prefix: 'prg', resource: programs },
  owner: { field: 'partner_id', prefix: 'part', resource: partners },
  envelope: ({ id, type, created_at, data, request_id }) => ({
    ...{ id, type, created_at, data },
    ...(request_id === undefined ? {} : { request: { id: request_id } }),
  }),
  envelope_fields: {
    request: z
      .object({ id: z.string().nullable().describe('Equals the header Rail-Request-Id. Null: nothing caused it.') })
      .optional()
      .describe('What caused it; not on test events.'),
  },
  envelope_doc:
    '`request.id` is the id of the API request or scheduled run that caused the event, null where nothing did, and a test event (`id` begins with `evt_test_`) has no `request`.',
  https_only: false,
  endpoint_types: null,
  chatText: null,
  retries: 'half_hourly',
  names_requests: true,
  lists_all: true,
  requireIncluded: null,
  most_in_log: null,
};
