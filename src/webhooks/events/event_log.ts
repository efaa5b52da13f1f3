import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Operation, readOperations } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { type EventPolicy, ownerFields, recordsOf, referenceColumns, subjectFields, withinSubject } from './policy.ts';

/** The retention of the log, and so the time that a replay can reach back. */
export const kept_days = 30;

const list_doc = `The events are in the strict sequence, and none is shown before all that precede it are. To receive every event by polling, pass the id of the newest event you have as \`ending_before\`, until \`has_more\` is false. If that event is no longer kept, the answer is 400 \`invalid_cursor\`: start again without a cursor.`;

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
    order: { by: 'position', oldest_first: false },
    shown: completeLog,
    list_doc,
    by: policy.owner ? [policy.owner.field] : [],
    filters: { type: { schema: z.enum(types).optional(), where: (value: string) => sql`t.type = ${value}` } },
  });
}

/** No event is shown before all that precede it are visible, so that who goes on from the newest one misses none. */
async function completeLog(tx: Tx): Promise<Sql> {
  const { position } = await tx.one<{ position: number }>(
    sql`select webhooks.complete_position(${tx.organization_id}) as position`,
  );
  return sql`t.position <= ${position}`;
}
