/** Compares what a processor says that it moved on a day with what is recorded of it, each night. */

import sql from 'sql-template-tag';
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { tenant } from '../../core/resource/resource.ts';
import { inOneLine } from '../../core/values/texts/one_line.ts';
import { formatMoney } from '../payouts/money_text.ts';
import { mailOwner } from '../programs/mail_owner.ts';
import { programs } from '../programs/program.ts';
import { compared_again_days } from './backlog.ts';
import { accountOf, type Connection, connectionById, whileKeyHolds } from './connection.ts';
import type { Movement } from './processor.ts';
import { billing } from './processors.ts';

const most_examples = 10;
const day_ms = 86_400_000;

/** A day of a connection. */
interface Compared {
  organization_id: string;
  id: string;
  /** `2026-11-28`, in UTC. */
  day: string;
}

/** The day before a tick for each connection, and those before it that still differ. */
export const daysToCompare = (tx: Tx, tick: string): Promise<Compared[]> =>
  tx.all<Compared>(sql`
    with night as (select (${tick}::timestamptz at time zone 'UTC')::date as today)
    select p.organization_id, p.id, to_char(d.day, 'YYYY-MM-DD') as day
    from night
    cross join program.processor p
    cross join lateral (
      select night.today - 1 as day
      union
      select t.day from program.processor_total t
      where t.organization_id = p.organization_id and t.program_id = p.program_id and t.processor = p.processor
        and t.day >= night.today - ${compared_again_days}::integer and t.day < night.today and t.difference_minor <> 0
    ) as d
    where p.deleted_at is null and p.status = 'connected'
    order by p.organization_id, p.id, d.day`);

/** Reads the day at the processor, adds it up beside what is recorded, and tells the owner of a difference that is new. */
export async function compareDay(
  { organization_id, id, day }: Compared,
  { store, services, cut_off }: Pick<TaskContext, 'store' | 'services' | 'cut_off'>,
): Promise<void> {
  const opening = { organization_id, request_id: null };
  const connection = await transaction(store, { ...opening, only_reads: true }, (tx) => connectionById(tx, id));
  if (!connection) return;
  const until = new Date(Date.parse(day) + day_ms).toISOString();
  const since = await transaction(store, { ...opening, only_reads: true }, (tx) => knownSince(tx, connection, day));
  if (since >= until) return;
  const account = accountOf(services, connection, cut_off);
  const totals = new Totals();
  await whileKeyHolds(store, opening, id, async () => {
    let from: string | null = null;
    do {
      const page: { movements: Movement[]; next: string | null } = await billing[connection.processor].movements(
        account,
        { since, until },
        from,
      );
      const { movements } = page;
      const found = await transaction(store, { ...opening, only_reads: true }, (tx) =>
        recordedOf(tx, connection, movements),
      );
      for (const [nth, movement] of movements.entries()) totals.add(movement, found[nth] as Recorded);
      from = page.next;
    } while (from !== null);
    await transaction(store, opening, (tx) => keep(tx, connection, day, totals.rows()));
  });
}

/** The beginning of the day, or when the program was connected first, if that was later: what was before is not known. */
async function knownSince(tx: Tx, { program_id, processor }: Connection, day: string): Promise<string> {
  const { since } = await tx.one<{ since: string }>(sql`
    select greatest(${`${day}T00:00:00.000Z`}::timestamptz, min(t.created_at)) as since
    from program.processor t where ${tenant(tx)} and t.program_id = ${program_id} and t.processor = ${processor}`);
  return since;
}

/** The record of a movement. Neither: it is missing. */
interface Recorded {
  minor: number | null;
  currency: string | null;
  /** It is known, and recorded nowhere on purpose. */
  is_uncredited: boolean;
}

/** Reasons for which the inbox leaves out what a processor moved. */
const left_out = ['unattributed', 'sale_deleted', 'sale_already_refunded'];

/**
 * Finds what is recorded of movements, in their order. An invoice that several payments paid counts for each of them as much as it moved: their
 * sum is that of the sale.
 */
const recordedOf = (tx: Tx, { program_id, processor }: Connection, movements: Movement[]): Promise<Recorded[]> => {
  const given = movements.map(({ ids, of, ...movement }, nth) => ({
    ...{ nth, ...movement, ids, charge_ids: of === null ? ids : [of] },
  }));
  const of_program = sql`${tenant(tx)} and t.program_id = ${program_id}`;
  const of_processor = sql`${of_program} and t.processor = ${processor}`;
  return tx.all<Recorded>(sql`
    select
      recorded.minor,
      charge.currency,
      charge.is_deleted is true or recorded.minor is null and (
        exists (
          select from program.processor_object t
          where ${of_processor} and t.external_id = any(m.charge_ids) and t.object_id is null and t.state is null
        )
        or exists (
          select from program.processor_event t
          where ${of_processor} and t.external_object_id = any(m.about) and t.status = 'ignored' and t.reason = any(${left_out}::text[])
        )
      ) as is_uncredited
    from json_to_recordset(${JSON.stringify(given)}::json)
      as m (nth integer, kind text, ids text[], about text[], charge_ids text[], amount_minor bigint)
    left join lateral (
      select s.amount_minor, s.currency, s.deleted_at is not null as is_deleted, exists (
        select from program.processor_object t
        where ${of_processor} and t.object_id = s.id and t.external_id <> s.external_charge_id and t.external_id <> all(m.charge_ids)
      ) as has_others
      from program.sale s
      where s.organization_id = ${tx.organization_id} and s.id in (
        select t.object_id from program.processor_object t where ${of_processor} and t.external_id = any(m.charge_ids)
        union all
        select t.id from program.sale t where ${of_program} and t.external_charge_id = any(m.charge_ids) and t.deleted_at is null
      )
      order by s.deleted_at nulls first
      limit 1
    ) as charge on true
    left join lateral (
      select case when t.reversed_at is null then t.amount_minor else 0 end as amount_minor
      from program.refund t
      where ${of_program} and t.external_refund_id = any(m.ids) and t.deleted_at is null
      limit 1
    ) as refund on m.kind = 'refund'
    left join lateral (
      select t.amount_minor from program.dispute t
      where ${of_program} and t.external_dispute_id = any(m.ids) and t.deleted_at is null
      limit 1
    ) as dispute on m.kind = 'dispute'
    cross join lateral (
      select
        case m.kind
          when 'charge' then case when charge.has_others then m.amount_minor else charge.amount_minor end
          when 'refund' then refund.amount_minor
          -- A dispute of more than the sale is recorded as one of the sale.
          else case when dispute.amount_minor = least(m.amount_minor, charge.amount_minor) then m.amount_minor else dispute.amount_minor end
        end as minor
    ) as recorded
    order by m.nth`);
};

interface Total {
  kind: Movement['kind'];
  currency: string;
  theirs: number;
  theirs_minor: number;
  ours_minor: number;
  uncredited_minor: number;
  examples: string[];
}

/** Sums by kind and currency. */
class Totals {
  readonly #rows = new Map<string, Total>();

  add({ kind, ids, amount_minor, currency }: Movement, recorded: Recorded): void {
    const theirs = this.#row(kind, currency);
    theirs.theirs += 1;
    theirs.theirs_minor += amount_minor;
    const { minor, is_uncredited } = recorded;
    const recorded_in = recorded.currency ?? currency;
    if (is_uncredited) theirs.uncredited_minor += amount_minor;
    else if (minor !== null) this.#row(kind, recorded_in).ours_minor += minor;
    const is_same = is_uncredited || (minor === amount_minor && recorded_in === currency);
    if (!is_same && theirs.examples.length < most_examples) theirs.examples.push(ids[0] as string);
  }

  rows(): Total[] {
    return [...this.#rows.values()];
  }

  #row(kind: Movement['kind'], currency: string): Total {
    const key = `${kind} ${currency}`;
    const none = { kind, currency, theirs: 0, theirs_minor: 0, ours_minor: 0, uncredited_minor: 0, examples: [] };
    const row = this.#rows.get(key) ?? none;
    this.#rows.set(key, row);
    return row;
  }
}

const differenceOf = ({ theirs_minor, ours_minor, uncredited_minor }: Total): number =>
  theirs_minor - ours_minor - uncredited_minor;

/** Replaces the totals of the day. Those that differ are told once, and again only where the difference is another one. */
async function keep(tx: Tx, connection: Connection, day: string, totals: Total[]): Promise<void> {
  const { program_id, processor } = connection;
  const before = await tx.all<Total>(sql`
    delete from program.processor_total t
    where ${tenant(tx)} and t.program_id = ${program_id} and t.processor = ${processor} and t.day = ${day}::date
    returning t.kind, t.currency, t.theirs, t.theirs_minor, t.ours_minor, t.uncredited_minor, t.examples`);
  const known = new Set(before.map((one) => `${one.kind} ${one.currency} ${differenceOf(one)}`));
  for (const total of totals)
    await insert(tx, 'program.processor_total', {
      ...{ program_id, processor, day, ...total, created_at: tx.now, updated_at: tx.now },
    });
  const differing = totals.filter((one) => differenceOf(one) !== 0);
  if (differing.every((one) => known.has(`${one.kind} ${one.currency} ${differenceOf(one)}`))) return;
  await mailDifference(tx, connection, day, differing);
}

const nouns = { charge: 'Charges', refund: 'Refunds', dispute: 'Disputes' } as const;

async function mailDifference(tx: Tx, { program_id, processor }: Connection, day: string, differing: Total[]) {
  const program = await programs.get(tx, program_id);
  const { title } = billing[processor];
  const lines = [
    `What ${title} moved on ${day} (UTC) for ${inOneLine(program.name)} is not what is recorded here.`,
    '',
    ...differing.map(({ kind, currency, examples, ...total }) => {
      const money = (minor: number) => formatMoney(minor, currency);
      const of_nobody = total.uncredited_minor === 0 ? '' : `, and ${money(total.uncredited_minor)} of nobody's`;
      const among = examples.length === 0 ? '' : ` Among them: ${examples.map(inOneLine).join(', ')}.`;
      return `${nouns[kind]}: ${money(total.theirs_minor)} at ${title}; ${money(total.ours_minor)} recorded${of_nobody}.${among}`;
    }),
    '',
    `Program: ${program_id}`,
    '',
    `GET /v1/processor_events?program_id=${program_id}&status=failed lists what was refused, and why. POST /v1/programs/${program_id}/processors/${processor}/backfill with {"since": "${day}T00:00:00Z"} takes in what never arrived. The day is compared again each night for a week.`,
  ];
  mailOwner(tx, {
    organization_id: tx.organization_id,
    subject: inOneLine(`${title} differs from what is recorded: ${program.name}`),
    text: `${lines.join('\n')}\n`,
  });
}
