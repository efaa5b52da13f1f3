import type { z } from 'zod';
import { transaction } from '../../core/postgres/transaction.ts';
import { openVault, requireSomeKey } from '../../encryption_key.ts';
import { dueAt } from '../../program/payouts/batches/batch.ts';
import { type BatchPreview, preview } from '../../program/payouts/batches/preview.ts';
import { formatMoney } from '../../program/payouts/money_text.ts';
import { programs } from '../../program/programs/program.ts';
import { answer, UsageError, withStore } from '../command.ts';
import { grouped, sheet, sumsLines } from './tables.ts';
import { organizationOf } from './tenant.ts';

const most_shown = 20;

interface PreviewOptions {
  program: string;
  cutoff?: string;
  json?: boolean;
}

type Preview = z.input<typeof BatchPreview>;

/** `rail payouts preview`: what a batch would contain. Writes nothing. */
export const previewPayouts = (options: PreviewOptions): Promise<void> =>
  withStore(async ({ store, config }) => {
    requireSomeKey(config);
    const vault = await openVault(config, store.database);
    const organization_id = await organizationOf(store.database, options.program);
    const found = await transaction(store, { organization_id, request_id: null }, async (tx) => {
      const program = await programs.get(tx, options.program);
      const cutoff = requirePast(options.cutoff ?? tx.now, tx.now);
      return preview(tx, { vault }, program, { cutoff, due_at: dueAt(program, cutoff) });
    });
    answer(found, { json: options.json, lines: linesOf(found) });
  });

/** @throws UsageError where the cut-off is in the future */
export function requirePast(cutoff: string, now: string): string {
  if (cutoff <= now) return cutoff;
  throw new UsageError(`--cutoff must not be in the future: it is ${now} now.`);
}

function linesOf(found: Preview): string[] {
  const { cutoff, due_at, partners_looked_at, payouts_total } = found;
  const partners = partners_looked_at === 1 ? 'partner has' : 'partners have';
  return [
    `${grouped(partners_looked_at)} ${partners} a balance by ${cutoff}. A batch would have ${grouped(payouts_total)} payouts, due ${due_at}. Nothing was created.`,
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
    ...(paid.length > 0 ? ['', ...sheet(['PARTNER', 'PAID', 'METHOD', 'COMMISSIONS'], paid, [1, 3], '')] : []),
    ...more(payouts_total - paid.length),
    ...(not.length > 0 ? ['', ...sheet(['PARTNER', 'NOT PAID', 'REASON'], not, [1], '')] : []),
    ...more(unpaid_total - not.length),
  ];
}

const more = (count: number): string[] =>
  count > 0 ? [`and ${grouped(count)} more: --json lists the first 1,000`] : [];
