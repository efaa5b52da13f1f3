/** Personal data in the event log: kept from endpoints without personal data, found, and removed when the person is erased. */
import { isDeepStrictEqual } from 'node:util';
import sql, { type Sql } from 'sql-template-tag';
import type { z } from 'zod';
import type { EmittedEvent, Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { timeOfId } from '../../core/values/id.ts';
import { withoutEmailsIn } from '../../core/values/texts/without_emails.ts';
import type { Catalogue } from './catalogue.ts';
import type { EventPolicy } from './policy.ts';

export interface StoredEvent {
  id: string;
  type: string;
  body: string;
  postback_body: string | null;
}

type Fields = Record<string, unknown>;

/** The fields of an event's `data` as endpoints without personal data receive them, where they differ; null: none does. */
export function replacedFields(
  catalogue: Catalogue,
  { type, data }: Pick<EmittedEvent, 'type' | 'data'>,
): Fields | null {
  const { personal = [] } = catalogue[type] ?? {};
  const replaced = Object.entries(data)
    .map(([field, value]) => ({ field, value, shown: personal.includes(field) ? null : withoutEmailsIn(value) }))
    .filter(({ value, shown }) => !isDeepStrictEqual(value, shown))
    .map(({ field, shown }) => [field, shown]);
  return replaced.length > 0 ? Object.fromEntries(replaced) : null;
}

type Log = Pick<EventPolicy, 'catalogue' | 'id_prefix' | 'delivery_prefix'>;

interface Mention {
  subject_id: string;
  types: string[];
  ids: string[];
  /** The time at which the oldest of the ids was made: earlier events mention none of them. */
  since_ms: number;
}

/** A part of the log of a subject, by positions. */
export interface LogPart {
  after: string;
  until: string;
  is_last: boolean;
}

const whole = sql`true`;

/** The events of a subject that mention one of these ids anywhere, of these types, in the strict sequence. */
export const eventsMentioning = (
  tx: Tx,
  { id_prefix }: Log,
  { subject_id, types, ids, since_ms }: Mention,
  part?: LogPart,
): Promise<StoredEvent[]> =>
  tx.all<StoredEvent>(sql`
    select t.id, t.type, t.body, t.postback_body
    from webhooks.event t
    where ${tenant(tx)} and t.program_id = ${subject_id} and t.type = any(${types}) and t.id >= ${firstId(id_prefix, since_ms)}
      and ${part ? sql`t.position > ${part.after}::bigint and t.position <= ${part.until}::bigint` : whole}
      and exists (select from unnest(${ids}::text[]) as mentioned (id) where strpos(t.body, mentioned.id) > 0)
    order by t.position`);

/** So many events are looked through in some ten milliseconds. */
const most_of_part = 10_000;

/** The part of a subject's log behind a position that a transaction looks through. */
export async function nextPart(
  tx: Tx,
  { id_prefix }: Log,
  { subject_id, since_ms }: Pick<Mention, 'subject_id' | 'since_ms'>,
  after: string,
): Promise<LogPart> {
  const { until, count } = await tx.one<{ until: string; count: number }>(sql`
    select coalesce(max(p.position), ${after}::bigint)::text as until, count(*)::integer as count
    from (
      select t.position
      from webhooks.event t
      where ${tenant(tx)} and t.program_id = ${subject_id} and t.position > ${after}::bigint and t.id >= ${firstId(id_prefix, since_ms)}
      order by t.position
      limit ${most_of_part}
    ) as p`);
  return { after, until, is_last: count < most_of_part };
}

/** Ids are made by the clocks of many processes, which differ. */
const clock_difference_ms = 3_600_000;

/** A text that no id made since then is smaller than: partitions of before are not read. */
const firstId = (prefix: string, since_ms: number): Sql =>
  sql`${`${prefix}_`} || core.id_time_part(to_timestamp(${(since_ms - clock_difference_ms) / 1_000}))`;

/**
 * Removes the personal fields from the bodies of events, as they are stored and as they are still to be sent, and what receivers answered
 * to them, which can repeat what they received.
 */
export async function erasePersonalData(
  tx: Tx,
  { catalogue, delivery_prefix }: Log,
  subject_id: string,
  events: StoredEvent[],
): Promise<void> {
  if (events.length === 0) return;
  const ids = events.map(({ id }) => id);
  const erased = events.map(({ id, type, body, postback_body }) => ({
    id,
    body: withoutPersonal(catalogue, type, body),
    postback_body: postback_body === null ? null : withoutPersonal(catalogue, type, postback_body),
  }));
  await tx.all(sql`
    update webhooks.event t
    set body = e.body, postback_body = e.postback_body
    from json_to_recordset(${JSON.stringify(erased)}::json) as e (id text, body text, postback_body text)
    where ${tenant(tx)} and t.id = e.id and t.id = any(${ids})`);
  await tx.all(sql`
    update webhooks.attempt t
    set response_body = null
    from webhooks.delivery d
    where ${tenant(tx)} and d.organization_id = t.organization_id and d.id = t.delivery_id
      and d.program_id = ${subject_id} and d.id >= ${firstId(delivery_prefix, Math.min(...ids.map(timeOfId)))}
      and d.event_id = any(${ids}) and t.response_body is not null`);
}

/** A body whose personal fields hold the first of these values that the type takes there. */
const substitutes = [null, 'erased', {}];

function withoutPersonal(catalogue: Catalogue, type: string, body: string): string {
  const { data: schema, personal = [] } = catalogue[type] ?? {};
  const envelope = JSON.parse(body) as { data: Record<string, unknown> };
  for (const field of personal.filter((name) => name in envelope.data)) {
    const taken = schema?.shape[field] as z.ZodType | undefined;
    envelope.data[field] = substitutes.find((value) => taken?.safeParse(value).success) ?? null;
  }
  return JSON.stringify(envelope);
}
