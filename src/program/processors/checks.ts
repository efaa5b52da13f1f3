/** The checks of `rail doctor` on billing processors. */
import sql from 'sql-template-tag';
import { counted, named } from '../../core/doctor/amounts.ts';
import { check, ok, rowsOf, warning } from '../../core/doctor/check.ts';
import { formatMoney } from '../payouts/money_text.ts';
import { compared_again_days } from './backlog.ts';

interface Differing {
  program_id: string;
  processor: string;
  day: string;
  kind: string;
  currency: string;
  difference_minor: number;
}

export const processorChecks = [
  check({
    name: 'program/processor_totals',
    read: rowsOf<Differing>(sql`
      select t.program_id, t.processor, to_char(t.day, 'YYYY-MM-DD') as day, t.kind, t.currency, t.difference_minor
      from program.processor_total t
      where t.day >= current_date - ${compared_again_days}::integer and t.difference_minor <> 0
      order by t.day desc, t.program_id, t.processor, t.kind, t.currency`),
    assess: (found) =>
      found.length === 0
        ? ok('What billing processors moved in the last seven days is what is recorded.')
        : warning(
            `${counted(found.length, 'daily total')} of billing processors differ from what is recorded: ${named(found.map(textOf))}.`,
            "GET /v1/processor_events?status=failed lists what was refused; 'npx --no rail processor backfill' takes in what never arrived.",
          ),
  }),
  check({
    name: 'program/processors_disconnected',
    read: rowsOf<{ program_id: string; processor: string; disconnected_reason: string }>(sql`
      select t.program_id, t.processor, t.disconnected_reason
      from program.processor t
      where t.deleted_at is null and t.status = 'disconnected'
      order by t.updated_at desc`),
    assess: (found) =>
      found.length === 0
        ? ok('No billing processor refuses its key.')
        : warning(
            `Disconnected: ${named(found.map(({ program_id, processor }) => `${processor} of ${program_id}`))}. Their payments do not become sales.`,
            'The owners were emailed. Events wait, and are worked on once the credentials are set again.',
          ),
  }),
];

const textOf = ({ program_id, processor, day, kind, currency, difference_minor }: Differing): string =>
  `${formatMoney(difference_minor, currency)} of ${kind}s at ${processor} on ${day} (${program_id})`;
