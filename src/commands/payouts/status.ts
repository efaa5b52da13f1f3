import sql from 'sql-template-tag';
import { type Store, transaction } from '../../core/postgres/transaction.ts';
import { formatMoney } from '../../program/payouts/money_text.ts';
import { type PayoutBatch, payoutBatches } from '../../program/payouts/payout_batch.ts';
import { type PayoutStatus, payout_states } from '../../program/payouts/payout_state.ts';
import { answer, withStore } from '../command.ts';
import { table } from '../output/table.ts';
import { grouped } from './tables.ts';

/** The number of batches that are shown, the newest first. */
const most_batches = 20;

interface StatusOptions {
  program?: string;
  batch?: string;
  json?: boolean;
}

/** Payouts of a batch that are alike. */
interface Group {
  batch_id: string;
  currency: string;
  status: PayoutStatus;
  livemode: boolean;
  error_code: string | null;
  payouts: number;
  amount_minor: number;
}

type BatchStatus = PayoutBatch & { by_status: Omit<Group, 'batch_id'>[] };

/** `rail payouts status`: batches, and what became of their payouts. */
export const showPayouts = ({ program, batch, json }: StatusOptions): Promise<void> =>
  withStore(async ({ store }) => {
    const batches = await read(store, { program, batch });
    if (batch !== undefined && batches.length === 0) throw new Error(`There is no batch '${batch}'.`);
    answer(batches, { json, lines: linesOf(batches) });
  });

const read = (
  store: Store,
  { program = null, batch = null }: { program?: string | null; batch?: string | null },
): Promise<BatchStatus[]> =>
  transaction(store, { organization_id: null, request_id: null }, async (tx) => {
    const batches = await tx.all<PayoutBatch>(sql`
      select ${payoutBatches.columns}
      from ${payoutBatches.from}
      where ${payoutBatches.alive} and (${program}::text is null or t.program_id = ${program})
        and (${batch}::text is null or t.id = ${batch})
      order by t.id desc
      limit ${most_batches}`);
    const groups = await tx.all<Group>(sql`
      select t.batch_id, t.currency, t.status, t.livemode, t.error_code, count(*) as payouts, sum(t.amount_minor)::bigint as amount_minor
      from program.payout t
      where t.batch_id = any(${batches.map(({ id }) => id)}) and t.deleted_at is null
      group by t.batch_id, t.currency, t.status, t.livemode, t.error_code
      order by t.batch_id, t.currency, t.status, t.livemode, t.error_code`);
    const of = Map.groupBy(groups, ({ batch_id }) => batch_id);
    return batches.map((one) => ({
      ...one,
      by_status: (of.get(one.id) ?? []).map(({ batch_id: _, ...rest }) => rest),
    }));
  });

const statuses = Object.keys(payout_states) as PayoutStatus[];

function linesOf(batches: BatchStatus[]): string[] {
  const columns = ['BATCH', 'STATUS', 'DUE AT', 'CURRENCY', ...statuses.map((status) => status.toUpperCase())];
  return [
    ...table(columns, batches.flatMap(rowsOf), 'There is no batch.'),
    ...generatingLines(batches),
    ...heldLines(batches),
    ...errorLines(batches),
  ];
}

/** One for each currency, and those of a rail in test mode by themselves. */
function rowsOf({ id, status, due_at, by_status }: BatchStatus): string[][] {
  const start = [id, status.replaceAll('_', ' '), due_at];
  const kinds = Map.groupBy(by_status, ({ currency, livemode }) => (livemode ? currency : `${currency} (test)`));
  if (kinds.size === 0) return [[...start, '', ...statuses.map(() => '')]];
  return [...kinds].map(([kind, groups], nth) => [
    ...(nth === 0 ? start : ['', '', '']),
    kind,
    ...statuses.map((wanted) => sumOf(groups.filter((group) => group.status === wanted))),
  ]);
}

/** `USD 1,234.50 in 3`; empty where there is none. */
function sumOf(groups: Omit<Group, 'batch_id'>[]): string {
  const [first] = groups;
  if (!first) return '';
  const total = groups.reduce((sum, { amount_minor }) => sum + amount_minor, 0);
  const payouts = groups.reduce((sum, group) => sum + group.payouts, 0);
  return `${formatMoney(total, first.currency)} in ${grouped(payouts)}`;
}

const generatingLines = (batches: BatchStatus[]): string[] =>
  batches
    .filter(({ progress }) => progress.state === 'running')
    .flatMap(({ id, progress: { partners_looked_at, payouts } }) => [
      '',
      `${id} is being created: ${grouped(partners_looked_at)} partners looked at, ${grouped(payouts)} payouts so far.`,
    ]);

function heldLines(batches: BatchStatus[]): string[] {
  const rows = batches.flatMap(({ id, not_sent }) =>
    not_sent.map(({ reason, reason_text, count }) => [id, reason, grouped(count), reason_text]),
  );
  return rows.length === 0 ? [] : ['', ...table(['BATCH', 'NOT SENT', 'PAYOUTS', 'REASON'], rows, '')];
}

function errorLines(batches: BatchStatus[]): string[] {
  const rows = batches.flatMap(({ id, by_status }) =>
    by_status
      .filter(({ status }) => status === 'failed')
      .map(({ error_code, payouts, amount_minor, currency }) => [
        ...[id, error_code ?? 'unknown', grouped(payouts), formatMoney(amount_minor, currency)],
      ]),
  );
  return rows.length === 0 ? [] : ['', ...table(['BATCH', 'ERROR', 'PAYOUTS', 'AMOUNT'], rows, '')];
}
