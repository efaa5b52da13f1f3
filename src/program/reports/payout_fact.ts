import sql, { join, raw, type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Asked } from './asked.ts';
import { filterCondition } from './dimension.ts';

/** Payouts are few: they are read as they are. Rows of `w`, key (the batch), currency and the measures. */
export function payoutFacts(tx: Tx, { program, filters, bounds }: Asked): Sql {
  const amountIn = (status: string): Sql => sql`case when p.status = ${status} then p.amount_minor end`;
  const columns = [
    ...[amountIn('pending'), amountIn('processing')],
    sql`case when p.status = 'paid' and p.livemode then p.amount_minor end`,
    ...[amountIn('failed'), sql`p.fee_minor`],
  ];
  return sql`
    select width_bucket(p.created_at, ${bounds}::timestamptz[]), p.batch_id, p.currency, 1::bigint, ${join(columns)}
    from program.payout p
    where p.organization_id = ${tx.organization_id} and p.program_id = ${program.id} and p.deleted_at is null
      and p.created_at >= ${bounds[0]}::timestamptz and p.created_at < ${bounds.at(-1)}::timestamptz
      and ${filterCondition(tx, program.id, filters, (name) => raw(`p.${name}`))}`;
}
