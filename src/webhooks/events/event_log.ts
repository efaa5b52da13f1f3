import sql from 'sql-template-tag';
import { z } from 'zod';
import { type Operation, readOperations } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { type EventPolicy, ownerFields, recordsOf, referenceColumns, subjectFields, withinSubject } from './policy.ts';

/** How long the log is kept, and so how far back it can be replayed. */
export const kept_days = 30;

/** The event log over REST: what was emitted in the last 30 days, newest first. */
export function eventOperations(policy: EventPolicy): Operation[] {
  const noun = policy.owner?.resource.object;
  const log = resource({
    object: 'event',
    schema_name: `${policy.namespace}event`,
    plural: 'events',
    table: 'webhooks.event',
    doc: `Something that happened, with the data that endpoints receive. Kept for ${kept_days} days.`,
    fields: {
      id: id(policy.id_prefix),
      object: objectName('event'),
      ...subjectFields(policy),
      ...ownerFields(policy, `The ${noun} whose event it is. Null: nobody's.`),
      type: text.describe('What happened: one of the types under Events.'),
      data: z.record(z.string(), z.json()).describe("The type's fields."),
      request: z
        .object({
          id: text
            .nullable()
            .describe('An API request (`req_…`) or a scheduled run (`run_…`). Null: nothing caused it.'),
        })
        .describe('What caused it.'),
      created_at: timestamp,
    },
    computed: {
      ...referenceColumns(policy),
      data: sql`(t.body::json -> 'data')`,
      request: sql`json_build_object('id', t.request_id)`,
    },
  });
  const types = Object.keys(policy.catalogue) as [string, ...string[]];
  return readOperations({
    ...withinSubject(policy),
    resource: recordsOf(log, policy, policy.id_prefix),
    by: policy.owner ? [policy.owner.field] : [],
    filters: { type: { schema: z.enum(types).optional(), where: (value: string) => sql`t.type = ${value}` } },
  });
}
