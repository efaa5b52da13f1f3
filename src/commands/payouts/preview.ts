import sql from 'sql-template-tag';
import type { z } from 'zod';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { openVault, requireSomeKey } from '../../encryption_key.ts';
import { dueAt } from '../../program/payouts/batches/batch.ts';
import { type BatchPreview, preview } from '../../program/payouts/batches/preview.ts';
import { formatMoney } from '../../program/payouts/money_text.ts';
import { programs } from '../../program/programs/program.ts';
import { choose } from '../chosen.ts';
import { answer, UsageError, withStore } from '../command.ts';
import { table } from '../output/table.ts';
import { grouped, sumsLines } from './tables.ts';

const most_shown = 20;

interface PreviewOptions {
  program?: string;
  cutoff?: string;
  json?: boolean;
}

type Preview = z.input<typeof BatchPreview>;

/** `rail payouts preview`: what a batch would contain. Writes nothing. */
export const previewPayouts = (options: PreviewOptions): Promise<void> =>
  withStore(async (opened) => {
    const { store, config } = opened;
    requireSomeKey(config);
    const vault = await openVault(config, store.database);
    const { id, organization_id } = await choose(opened, 'program', options.program, { or_demo: true });
    const { found, later } = await transaction(store, { organization_id, request_id: null }, async (tx) => {
      const program = await programs.get(tx, id);
      const cutoff = requirePast(options.cutoff ?? tx.now, tx.now);
      const found = await preview(tx, { vault }, program, { cutoff, due_at: dueAt(program, cutoff) });
      return { found, later: await maturingLater(tx, found) };
    });
    answer(found, { json: options.json, lines: [...linesOf(found), ...laterLines(later)] });
  });

interface Later {
  currency: string;
  commissions: number;
  amount_minor: number;
  first_at: string;
}

/** Sums the commissions that the cut-off leaves to a later batch. */
export const maturingLater = (
  tx: Tx,
  { program_id, cutoff }: Pick<Preview, 'program_id' | 'cutoff'>,
): Promise<Later[]> =>
  tx.all<Later>(sql`
    select t.currency, count(*) as commissions, sum(t.amount_minor)::bigint as amount_minor, min(t.mature_at) as first_at
    from program.commission t
    where ${tenant(tx)} and t.program_id = ${program_id} and t.status in ('pending', 'approved', 'due') and t.deleted_at is null
      and t.payout_id is null and t.kind <> 'clawback' and t.mature_at >= ${cutoff}::timestamptz
    group by t.currency
    order by t.currency`);

export const laterLines = (later: Later[]): string[] => [
  ...(later.length > 0 ? [''] : []),
  ...later.map(({ currency, commissions, amount_minor, first_at }) => {
    const sum = formatMoney(amount_minor, currency);
    if (commissions === 1) return `1 commission of ${sum} matures after the cut-off, on ${first_at}.`;
    return `${grouped(commissions)} commissions of ${sum} together mature after the cut-off, the first on ${first_at}.`;
  }),
];

/** @throws UsageError where the cut-off is in the future */
export function requirePast(cutoff: string, now: string): string {
  if (cutoff <= now) return cutoff;
  throw new UsageError(`--cutoff must not be in the future: it is ${now} now.`);
}

function linesOf(found: Preview): string[] {
  const { cutoff, due_at, partners_looked_at, payouts_total } = found;
  const partners = partners_looked_at === 1 ? 'partner has' : 'partners have';
  return [
    `${grouped(partners_looked_at)} ${partners} a balance by ${cutoff}. A batch would have ${grouped(payouts_total)} ${payouts_total === 1 ? 'payout' : 'payouts'}, due ${due_at}. Nothing was created.`,
    '',
    ...sumsLines(found),
    ...peopleLines(found),
  ];
}

/** The first partners of each kind. */
function peopleLines({ payouts, unpaid, payouts_total, not_eligible }: Preview): string[] {
  const paid = payouts
    .slice(0, most_shown)
    .map((payout) => [
      ...[payout.partner_id, formatMoney(payout.amount_minor, payout.currency), payout.method],
      grouped(payout.commission_count),
    ]);
  const not = unpaid
    .slice(0, most_shown)
    .map(({ partner_id, amount_minor, currency, reason }) => [partner_id, formatMoney(amount_minor, currency), reason]);
  const unpaid_total = not_eligible.reduce((sum, { count }) => sum + count, 0);
  return [
    ...(paid.length > 0 ? ['', ...table(['PARTNER', 'PAID', 'METHOD', 'COMMISSIONS'], paid, '')] : []),
    ...more(payouts_total - paid.length),
    ...(not.length > 0 ? ['', ...table(['PARTNER', 'NOT PAID', 'REASON'], not, '')] : []),
    ...more(unpaid_total - not.length),
  ];
}

const more = (count: number): string[] =>
  count > 0 ? [`and ${grouped(count)} more: --json lists the first 1,000`] : [];
