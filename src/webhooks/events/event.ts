import sql from 'sql-template-tag';
import type { z } from 'zod';
import type { EmittedEvent, EventDraft, WriteEvents } from '../../core/postgres/transaction.ts';
import { newId } from '../../core/values/id.ts';
import { withoutEmails } from '../../core/values/texts/without_emails.ts';
import { traceparent } from '../../core/values/trace.ts';
import type { Catalogue } from './catalogue.ts';
import { replacedFields } from './personal_data.ts';
import type { EventPolicy } from './policy.ts';

/**
 * Writes drafts to the event log, each with the exact body that endpoints will receive: "an event is written in the same
 * transaction as the change it describes". A draft goes by the policy of the product that it names.
 */
export function eventWriter(policies: EventPolicy[]): WriteEvents {
  const known = new Map(policies.map((policy) => [policy.product, policy]));
  return (drafts, context) =>
    runsOf(drafts).map((run) => {
      const [{ product }] = run;
      const policy = known.get(product);
      if (!policy) throw new Error(`No product '${product}' emits events.`);
      return writeStatement(policy, run, context);
    });
}

type Run = [EventDraft, ...EventDraft[]];

/** Drafts of one product that follow one another: a statement each, so that events keep the order in which they were emitted. */
function runsOf(drafts: EventDraft[]): Run[] {
  const runs: Run[] = [];
  for (const draft of drafts) {
    const last = runs.at(-1);
    if (last?.[0].product === draft.product) last.push(draft);
    else runs.push([draft]);
  }
  return runs;
}

function writeStatement(
  policy: EventPolicy,
  drafts: EventDraft[],
  { organization_id, request_id, now }: Parameters<WriteEvents>[1],
) {
  const cause = policy.names_requests ? request_id : null;
  const traced = traceparent();
  const events = drafts.map(({ type, subject_id, owner_id, data, livemode = true, request_id: own }) => {
    const known = policy.catalogue[type];
    if (!known) throw new Error(`No event type '${type}' in the catalogue.`);
    const id = livemode ? newId(policy.id_prefix) : newTestId();
    const event = { id, type, created_at: now, data: known.data.parse(data), request_id: own ?? request_id, livemode };
    return {
      ...{ id, program_id: subject_id, partner_id: owner_id, type, livemode },
      body: JSON.stringify(policy.envelope(event)),
      postback_body: postbackBody(policy, event),
      chat_text: policy.chatText?.(event) ?? null,
      without_personal: replacedFields(policy.catalogue, event),
      ...(own && policy.names_requests ? { request_id: own } : {}),
      ...(traced && { traceparent: traced }),
    };
  });
  return sql`select webhooks.write_events(${organization_id}, ${cause}, ${now}::timestamptz, ${JSON.stringify(events)}::json,
    ${policy.delivery_prefix})`;
}

/** Returns an id for the event of a test, which is sent once. */
export const newTestId = (): string => newId('evt').replace('evt_', 'evt_test_');

/** The body that a postback receives; null: it receives nothing of the type. */
export function postbackBody({ catalogue, envelope }: EventPolicy, event: EmittedEvent): string | null {
  const { postback = false } = catalogue[event.type] ?? {};
  if (postback === false) return null;
  return JSON.stringify(envelope({ ...event, data: without(event.data, postback.omit) }), hidingEmails);
}

/** Makes events of a product whose types and fields the compiler checks against its catalogue. */
export const draftOf =
  <Types extends Catalogue>(product: string, _catalogue: Types, owner_field?: string) =>
  <Type extends keyof Types & string>(
    type: Type,
    subject_id: string,
    data: z.input<Types[Type]['data']>,
  ): EventDraft => ({
    ...{ product, type, subject_id, data },
    owner_id: owner_field === undefined ? null : ((data as Record<string, string | null>)[owner_field] ?? null),
  });

/** A postback "never receives a customer's email address": not where it hides in the address of a page or in somebody's words either. */
const hidingEmails = (_name: string, value: unknown): unknown =>
  typeof value === 'string' ? withoutEmails(value) : value;

const without = (data: object, fields: string[]): object =>
  Object.fromEntries(Object.entries(data).filter(([name]) => !fields.includes(name)));
