import sql from 'sql-template-tag';
import type { z } from 'zod';
import { newId } from '../core/id.ts';
import type { EventDraft, WriteEvents } from '../core/transaction.ts';
import type { Catalogue } from './catalogue.ts';
import { watch_name } from './fan_out.ts';

/** How a product's events look and are called. */
export interface EventPolicy {
  catalogue: Catalogue;
  /** `evt` */
  id_prefix: string;
}

/**
 * Writes drafts to the event log, each with the exact body that endpoints will receive: "an event is written in the same
 * transaction as the change it describes".
 */
export const eventWriter =
  ({ catalogue, id_prefix }: EventPolicy): WriteEvents =>
  (drafts, { organization_id, request_id, now }) => {
    const events = drafts.map((draft) => {
      const id = newId(id_prefix);
      const known = catalogue[draft.type];
      if (!known) throw new Error(`No event type '${draft.type}' in the catalogue.`);
      const data = known.data.parse(draft.data);
      const envelope = (of: object) =>
        JSON.stringify({ id, type: draft.type, created_at: now, data: of, request: { id: request_id } });
      return {
        id,
        program_id: draft.program_id,
        partner_id: draft.partner_id,
        type: draft.type,
        body: envelope(data),
        postback_body: known.postback === false ? null : envelope(without(data, known.postback.omit)),
      };
    });
    return {
      statement: sql`select webhooks.write_events(${organization_id}, ${request_id}, ${now}::timestamptz, ${JSON.stringify(events)}::json)`,
      jobs: [{ identifier: 'webhooks/fan_out', payload: {}, unless_watched: watch_name }],
    };
  };

/** An event whose type and fields the compiler checks against the catalogue. */
export const draftOf =
  <Types extends Catalogue>(_catalogue: Types) =>
  <Type extends keyof Types & string>(
    type: Type,
    program_id: string,
    data: z.input<Types[Type]['data']>,
  ): EventDraft => ({
    type,
    program_id,
    partner_id: (data as { partner_id?: string | null }).partner_id ?? null,
    data,
  });

const without = (data: object, fields: string[]): object =>
  Object.fromEntries(Object.entries(data).filter(([name]) => !fields.includes(name)));
