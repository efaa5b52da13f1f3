import sql from 'sql-template-tag';
import { z } from 'zod';
import { type Operation, readOperations } from '../../core/resource/operation.ts';
import { type AnyResource, resource } from '../../core/resource/resource.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import type { Catalogue } from './catalogue.ts';

/** How long the log is kept, and so how far back it can be replayed. */
export const kept_days = 30;

/** The event log over REST: what was emitted in the last 30 days, newest first. */
export function eventOperations({ catalogue, program }: { catalogue: Catalogue; program: AnyResource }): Operation[] {
  const log = resource({
    object: 'event',
    plural: 'events',
    table: 'webhooks.event',
    doc: `Something that happened, as endpoints were told of it. Kept for ${kept_days} days.`,
    fields: {
      id: id('evt'),
      object: objectName('event'),
      program_id: id('prg'),
      partner_id: id('part').nullable().describe("The partner whose event it is. Null: nobody's."),
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
      data: sql`(t.body::json -> 'data')`,
      request: sql`json_build_object('id', t.request_id)`,
    },
  });
  const types = Object.keys(catalogue) as [string, ...string[]];
  return readOperations({
    resource: log,
    within: program,
    by: ['partner_id'],
    filters: { type: { schema: z.enum(types).optional(), where: (value: string) => sql`t.type = ${value}` } },
  });
}
