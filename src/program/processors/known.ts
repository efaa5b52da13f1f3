/** The ids of a processor that are known, and what they are here. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import type { Program } from '../programs/program.ts';
import { release } from './inbox.ts';
import type { ProcessorName } from './processor.ts';

/** The context in which the facts of an event are applied. */
export interface Applying {
  tx: Tx;
  program: Program;
  processor: ProcessorName;
  event_id: string;
  /** When the event happened. */
  occurred_at: string;
  /** The connection, which acts in place of an API key. */
  by: string;
  services: Services;
}

/** The outcome of a fact or an event. */
export interface Outcome {
  status: 'waiting' | 'done' | 'ignored' | 'failed';
  waiting_for?: string | null;
  reason?: string;
  message?: string;
  result_id?: string | null;
}

export const done = (result_id: string | null, reason?: string): Outcome => ({
  status: 'done',
  result_id,
  ...(reason === undefined ? {} : { reason }),
});
export const ignored = (reason: string, message: string): Outcome => ({ status: 'ignored', reason, message });
export const waitingFor = (id: string): Outcome => ({
  status: 'waiting',
  waiting_for: id,
  reason: 'not_known_yet',
  message: `Nothing is known of ${id} yet.`,
});
export const unattributed = (waiting_for: string | null, message: string): Outcome => ({
  status: 'ignored',
  waiting_for,
  reason: 'unattributed',
  message,
});

export interface Known {
  /** Null: it is nothing here. */
  object_id: string | null;
  state: string | null;
  as_of: string;
}

/**
 * Locks ids of a processor until the transaction ends, whether they are known or not: of an event that makes an id known and one that waits for it,
 * one comes after the other and sees it. Always all at once and in order, before any row.
 */
export const lockIds = (tx: Tx, program_id: string, ids: string[]): Promise<object[]> =>
  tx.all(sql`
    select pg_advisory_xact_lock(hashtextextended(${program_id}::text || ' ' || g.id, 2))
    from (select distinct g.id from unnest(${ids}::text[]) as g (id) order by g.id) as g`);

export const findKnown = ({ tx, program, processor }: Applying, external_id: string): Promise<Known | undefined> =>
  tx.maybe<Known>(sql`
    select t.object_id, t.state, t.as_of
    from program.processor_object t
    where ${tenant(tx)} and t.program_id = ${program.id} and t.processor = ${processor} and t.external_id = ${external_id}`);

interface Knowledge {
  object_id: string | null;
  state?: string;
  /** The time of the event that says so. */
  at?: string;
}

/** Notes what ids are here, and works on what waited for them. */
export async function know(applying: Applying, ids: string[], { object_id, state, at }: Knowledge): Promise<void> {
  const { tx, program, processor, event_id } = applying;
  await tx.all(sql`
    insert into program.processor_object as t
      (organization_id, program_id, processor, external_id, object_id, event_id, state, as_of, created_at, updated_at)
    select
      ${tx.organization_id}, ${program.id}, ${processor}, g.id, ${object_id}, ${event_id}, ${state ?? null}, ${at ?? tx.now}::timestamptz,
      ${tx.now}::timestamptz, ${tx.now}::timestamptz
    from (select distinct g.id from unnest(${ids}::text[]) as g (id) order by g.id) as g
    on conflict (organization_id, program_id, processor, external_id) do update
    set object_id = excluded.object_id, event_id = excluded.event_id, state = excluded.state, as_of = excluded.as_of, updated_at = excluded.updated_at`);
  await release(tx, program.id, ids);
}

/** Notes that ids which are not known yet are nothing here, and works on what waited for them. */
export async function knowNothing({ tx, program, processor, event_id }: Applying, ids: string[]): Promise<void> {
  const noted = await tx.all<{ external_id: string }>(sql`
    insert into program.processor_object as t
      (organization_id, program_id, processor, external_id, event_id, as_of, created_at, updated_at)
    select
      ${tx.organization_id}, ${program.id}, ${processor}, g.id, ${event_id}, ${tx.now}::timestamptz, ${tx.now}::timestamptz, ${tx.now}::timestamptz
    from (select distinct g.id from unnest(${ids}::text[]) as g (id) order by g.id) as g
    on conflict do nothing
    returning t.external_id`);
  await release(
    tx,
    program.id,
    noted.map(({ external_id }) => external_id),
  );
}

/** A state is taken over only from an event that is not older than the one that told the last: they come in any order. */
export const isOlder = (at: string, known: Known | undefined): boolean =>
  known !== undefined && Date.parse(at) < Date.parse(known.as_of);

export const older = ignored('older', 'A later event has told its state already.');
