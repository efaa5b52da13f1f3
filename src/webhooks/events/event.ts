import sql from 'sql-template-tag';
import type { z } from 'zod';
import type { EventDraft, WriteEvents } from '../../core/postgres/transaction.ts';
import { newId } from '../../core/values/id.ts';
import { watch_name } from '../queue/fan_out.ts';
import type { Catalogue } from './catalogue.ts';

/** What a product's webhooks have of their own: all else is the same machinery. */
export interface EventPolicy {
  catalogue: Catalogue;
  /** `evt` */
  id_prefix: string;
  /** `whd` */
  delivery_prefix: string;
  /** The body that endpoints receive. Test events have it too, with an id that starts with `evt_test_`. */
  envelope(told: Told): object;
  /** Endpoints must be https addresses. */
  https_only: boolean;
  /** How many of an endpoint's newest deliveries its log shows; null: all that are kept. */
  most_in_log: number | null;
}

export interface Told {
  id: string;
  type: string;
  created_at: string;
  data: object;
  /** What caused it: `req_…`, `run_…`, null; undefined for a test event. */
  request_id: string | null | undefined;
  livemode: boolean;
}

/**
 * Writes drafts to the event log, each with the exact body that endpoints will receive: "an event is written in the same
 * transaction as the change it describes".
 */
export const eventWriter =
  (policy: EventPolicy): WriteEvents =>
  (drafts, { organization_id, request_id, now }) => {
    const events = drafts.map((draft) => {
      const id = newId(policy.id_prefix);
      const known = policy.catalogue[draft.type];
      if (!known) throw new Error(`No event type '${draft.type}' in the catalogue.`);
      const { type, livemode = true } = draft;
      const told = { id, type, created_at: now, data: known.data.parse(draft.data), request_id, livemode };
      return {
        id,
        program_id: draft.program_id,
        partner_id: draft.partner_id,
        type,
        livemode,
        body: JSON.stringify(policy.envelope(told)),
        postback_body: postbackBody(policy, told),
      };
    });
    return {
      statement: sql`select webhooks.write_events(${organization_id}, ${request_id}, ${now}::timestamptz, ${JSON.stringify(events)}::json,
        ${policy.delivery_prefix})`,
      jobs: [{ identifier: 'webhooks/fan_out', payload: {}, unless_watched: watch_name }],
    };
  };

/** The body that a partner's postback receives; null: it receives nothing of the type. */
export function postbackBody({ catalogue, envelope }: EventPolicy, told: Told): string | null {
  const { postback = false } = catalogue[told.type] ?? {};
  if (postback === false) return null;
  return JSON.stringify(envelope({ ...told, data: without(told.data, postback.omit) }), withoutEmails);
}

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

/** A postback "never receives a customer's email address": not where it hides in the address of a page or in somebody's words either. */
const withoutEmails = (_name: string, value: unknown): unknown =>
  typeof value === 'string' ? value.replaceAll(/[^\s/?&=#:;,<>()"']+(?:@|%40)[^\s/?&=#:;,<>()"']+/gi, 'hidden') : value;

const without = (data: object, fields: string[]): object =>
  Object.fromEntries(Object.entries(data).filter(([name]) => !fields.includes(name)));
