/** The checks of `rail doctor` on payouts and sums, and those of rooms. */
import sql from 'sql-template-tag';
import { ago, counted, named } from '../core/doctor/amounts.ts';
import { check, error, ok, rowOf, rowsOf, warning } from '../core/doctor/check.ts';
import { processorChecks } from './processors/checks.ts';
import { snippetChecks } from './snippet/checks.ts';

const doubt_hours = 1;
const processing_days = 7;
const late_fold_s = 180;

interface Payout {
  id: string;
  rail: string;
  seconds: number;
}

const payoutsOf = (found: Payout[]): string =>
  named(found.map(({ id, rail, seconds }) => `${id} (${rail}) for ${ago(seconds)}`));

export const checks = [
  check({
    name: 'program/payouts_in_doubt',
    read: rowsOf<Payout>(sql`
      select a.payout_id as id, a.rail, extract(epoch from now() - coalesce(a.last_sent_at, a.began_at))::float8 as seconds
      from program.payout_attempt a
      where a.status = 'in_doubt' and a.next_poll_at is not null and a.began_at < now() - make_interval(hours => ${doubt_hours})
      order by a.began_at`),
    assess: (found) =>
      found.length === 0
        ? ok('No payout has been in doubt for an hour.')
        : warning(
            `${counted(found.length, 'payout')} in doubt: ${payoutsOf(found)}. Nobody knows yet whether they were paid.`,
            'They are looked up again by themselves, and never paid twice. Look at the account of the provider, and whether it answers.',
          ),
  }),
  check({
    name: 'program/payouts_processing',
    read: rowsOf<Payout>(sql`
      select a.payout_id as id, a.rail, extract(epoch from now() - a.began_at)::float8 as seconds
      from program.payout_attempt a
      where a.status = 'processing' and a.next_poll_at is not null and a.began_at < now() - make_interval(days => ${processing_days})
      order by a.began_at`),
    assess: (found) =>
      found.length === 0
        ? ok('No provider has kept a payout for a week.')
        : warning(`With their provider: ${payoutsOf(found)}.`, 'Ask the provider what became of them.'),
  }),
  check({
    name: 'program/payout_batches',
    read: rowsOf<{ id: string; seconds: number }>(sql`
      select b.id, extract(epoch from now() - b.created_at)::float8 as seconds
      from program.payout_batch b
      where b.stage = 'generating' and b.deleted_at is null and b.created_at < now() - interval '1 hour'
        and coalesce(b.scheduled_for, b.created_at) < now() - interval '1 hour'
      order by b.created_at`),
    assess: (found) =>
      found.length === 0
        ? ok('No batch of payouts is being created for long.')
        : error(
            `Being created: ${named(found.map(({ id, seconds }) => `${id} for ${ago(seconds)}`))}.`,
            "'npx --no rail jobs list --object BATCH' shows its job and why it fails.",
          ),
  }),
  check({
    name: 'program/sums',
    read: rowOf<{ seconds: number | null }>(sql`
      select extract(epoch from now() - min(j.created_at))::float8 as seconds
      from core.jobs() j
      where j.task in ('program/fold_reports', 'program/fold_tallies', 'program/rebuild_reports') and j.state <> 'cancelled'`),
    assess({ seconds }) {
      if (seconds === null) return ok('The sums of reports and lists are up to date.');
      const text = `The oldest job that folds sums of reports and lists has been there for ${ago(seconds)}.`;
      if (seconds <= late_fold_s) return ok(text);
      return warning(
        `${text} Reports stay right, and get slower.`,
        "'npx --no rail jobs list --task program/fold_reports' shows why it fails.",
      );
    },
  }),
  ...processorChecks,
  ...snippetChecks,
];
