import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { notFound, Problem } from '../../core/values/problem.ts';
import { ofPayout } from '../commissions/commission.ts';
import { payeeName } from '../partners/partner.ts';
import type { Sale } from '../sales/sale.ts';
import { type Payout, payouts } from './payout.ts';
import { Statement, type StatementLine, statementTotals } from './statement/statement.ts';
import { statementCsv } from './statement/statement_csv.ts';

export const payoutStatementOperations: Operation[] = [
  operation({
    name: 'payouts.get_statement',
    method: 'GET',
    path: '/v1/payouts/{id}/statement',
    scope: 'payouts:read',
    summary: 'Returns the statement of a payout: each commission with its sale, and the totals.',
    doc: 'As JSON, CSV or PDF, by `format` or by the header `Accept`. A payout that was never paid has a draft. A paid one has a number, which it keeps: `2026-00042`, without gaps for each program and year, also if the payment is returned and the payout deleted. In the first seconds after the payment, until the number is given, the response is 409 with `Retry-After`.',
    params: idParams,
    query: z.strictObject({
      format: z
        .enum(['json', 'csv', 'pdf'])
        .optional()
        .describe('The format of the response. The default is what the header `Accept` asks for, otherwise `json`.'),
    }),
    reply: Statement,
    errors: ['invalid_state_transition'],
    run: ({ tx, params }) => statementOf(tx, params.id),
    file: {
      media_types: { csv: 'text/csv', pdf: 'application/pdf' },
      async open({ tx, params, format }) {
        const statement = await statementOf(tx, params.id);
        const name = statementFile(statement, format);
        if (format === 'csv') return { name, media_type: 'text/csv; charset=utf-8', chunks: gathered(statement) };
        // The package pdfkit takes its time to load, and few processes ever draw one.
        const { statementPdf } = await import('./statement/statement_pdf.ts');
        return { name, media_type: 'application/pdf', chunks: statementPdf(statement) };
      },
    },
  }),
];

/** `statement-2026-00042.pdf`, and of a draft `statement-pyt_….pdf`. */
export const statementFile = ({ number, payout }: Statement, ending: string): string =>
  `statement-${/^\d/.test(number) ? number : payout.id}.${ending}`;

const chunk_length = 32_768;

async function* gathered(statement: Statement): AsyncGenerator<string> {
  let chunk = '';
  for (const line of statementCsv(statement)) {
    chunk += line;
    if (chunk.length < chunk_length) continue;
    yield chunk;
    chunk = '';
  }
  yield chunk;
}

/** Gives a number to each paid payout of the program that has none. */
export const numberStatements = (tx: Tx, program_id: string): Promise<object[]> =>
  tx.all(sql`select program.number_statements(${tx.organization_id}, ${program_id})`);

/** A statement without what it lists, which may be hundreds of thousands of lines. */
export type StatementHead = Omit<Statement, 'lines' | 'totals'>;

/** @throws Problem resource_not_found, invalid_state_transition */
export async function statementOf(tx: Tx, payout_id: string): Promise<Statement> {
  const payout = await statedPayout(tx, payout_id);
  const head = await headOf(tx, payout);
  const lines = await linesOf(tx, payout);
  return { ...head, lines, totals: statementTotals(lines) };
}

/** Without lines where there are more than `most_lines`. @throws Problem resource_not_found, invalid_state_transition */
export async function statementUpTo(tx: Tx, payout_id: string, most_lines: number): Promise<StatementHead | Statement> {
  const payout = await statedPayout(tx, payout_id);
  return payout.commission_count > most_lines ? headOf(tx, payout) : statementOf(tx, payout_id);
}

async function headOf(tx: Tx, payout: StatedPayout): Promise<StatementHead> {
  const parties = await partiesOf(tx, payout);
  const { period_start, period_end, currency } = payout;
  return {
    number: numberOf(payout),
    livemode: payout.livemode || payout.statement_number !== null,
    program: { id: payout.program_id, name: parties.program_name },
    partner: { id: payout.partner_id, name: parties.partner_name, email: parties.partner_email },
    ...{ period_start, period_end, currency },
    payout: {
      ...{ id: payout.id, amount_minor: payout.amount_minor, fee_minor: payout.fee_minor },
      ...{ method: payout.method, destination_hint: payout.destination_hint, external_id: payout.external_id },
      ...paymentOf(payout),
    },
  };
}

/** A payout, also a deleted one whose statement has a number. */
interface StatedPayout extends Payout {
  statement_number: string | null;
  /** The time at which it last settled, also if the payment was returned later. Null without a number. */
  settled_at: string | null;
  /** Its commissions are in it no more. */
  is_given_up: boolean;
}

/** @throws Problem resource_not_found */
async function statedPayout(tx: Tx, id: string): Promise<StatedPayout> {
  const payout = await tx.maybe<StatedPayout>(sql`
    select ${payouts.columns}, t.statement_number, t.deleted_at is not null or (not t.livemode and t.status in ('paid', 'failed')) as is_given_up,
      case when t.statement_number is not null then (
        select e.effective_at from ${paidBy(sql`t`)} order by e.position desc limit 1
      ) end as settled_at
    from ${payouts.from}
    where ${tenant(tx)} and t.id = ${id} and (${payouts.alive} or t.statement_number is not null)`);
  if (!payout) throw notFound(payouts.object, id);
  return payout;
}

/** The entries of what a payout paid, called `e`. */
const paidBy = (payout: Sql): Sql => sql`
  (
    select x.commission_id, x.amount_minor, x.effective_at, x.position
    from program.commission_entry x
    where x.organization_id = ${payout}.organization_id and x.partner_id = ${payout}.partner_id and x.currency = ${payout}.currency
      and x.payout_id = ${payout}.id and x.cause = 'payout_paid'
  ) as e`;

/** The payment as a numbered statement documents it, whatever became of its payout. */
function paymentOf({ status, livemode, paid_at, statement_number, settled_at }: StatedPayout) {
  if (statement_number === null || (status === 'paid' && livemode)) return { status, paid_at };
  return { status: 'failed' as const, paid_at: settled_at };
}

/** @throws Problem invalid_state_transition */
function numberOf({ status, livemode, statement_number }: StatedPayout): string {
  if (statement_number !== null) return statement_number;
  if (!livemode && (status === 'paid' || status === 'failed')) {
    throw new Problem(
      'invalid_state_transition',
      'The payout was sent in test mode and has ended. It has no statement, because its commissions are due again.',
    );
  }
  if (!livemode) return 'TEST';
  if (status !== 'paid') return 'DRAFT';
  throw new Problem(
    'invalid_state_transition',
    'The payout has just been paid, and its statement has no number yet. Try again in a few seconds.',
    { headers: { 'Retry-After': '2' } },
  );
}

interface Parties {
  program_name: string;
  partner_name: string;
  partner_email: string;
}

/** A partner who was deleted since is still named. */
const partiesOf = (tx: Tx, { id }: Payout): Promise<Parties> =>
  tx.one(sql`
    select g.product_name as program_name, p.email as partner_email,
      ${payeeName('p')} as partner_name
    from program.payout t
    join program.partner p on p.organization_id = t.organization_id and p.id = t.partner_id
    join program.program g on g.organization_id = t.organization_id and g.id = t.program_id
    where ${tenant(tx)} and t.id = ${id}`);

interface Row extends Omit<StatementLine, 'description'> {
  note: string | null;
  /** True if a refund is counted in it. */
  is_refunded: boolean;
}

/**
 * Refunds after a payout was sent, or paid, are not in its lines: clawbacks carry them. What a line says of refunds, and of the amount of its
 * sale, stays as it was then.
 */
async function linesOf(tx: Tx, payout: StatedPayout): Promise<StatementLine[]> {
  const { id } = payout;
  const amount = payout.is_given_up ? sql`l.amount_minor` : sql`t.amount_minor`;
  const rows = await tx.all<Row>(sql`
    select t.created_at as date, t.id as commission_id, t.kind, ${amount} as amount_minor, t.note, s.external_charge_id as sale_reference,
      case when s.currency = t.currency then coalesce(l.sale_amount_minor, s.amount_minor) end as sale_amount_minor,
      exists (
        select from program.refund r
        where r.organization_id = t.organization_id and r.sale_id = s.id and r.created_at <= case
          when t.kind = 'clawback' then t.created_at
          else coalesce(sent.at, case t.status when 'paid' then t.updated_at end, 'infinity')
        end
      ) as is_refunded
    from program.commission t
    join ${payout.is_given_up ? whatItPaid(tx, payout) : whatItHolds(payout)}
    left join program.commission o on o.organization_id = t.organization_id and o.id = t.clawback_of
    left join program.sale s on s.organization_id = t.organization_id and s.id = coalesce(t.sale_id, o.sale_id)
    cross join (
      select min(a.began_at) as at
      from program.payout_attempt a
      where a.organization_id = ${tx.organization_id} and a.payout_id = ${id}
    ) as sent
    where ${tenant(tx)}
    order by t.created_at, t.id`);
  return rows.map(({ note, is_refunded, ...line }) => ({
    ...line,
    description: descriptionOf(line.kind, is_refunded, note),
  }));
}

/** Joins a payout's rows, called `l`, to its commissions, called `t`. */
const whatItHolds = ({ id }: Payout): Sql => sql`
  program.payout_commission l
    on l.organization_id = t.organization_id and l.payout_id = t.payout_id and l.commission_id = t.id and ${ofPayout(id)}`;

/** The same of a payout that was paid, returned and given up: its commissions are in another one, or in none. Each is listed once. */
const whatItPaid = (tx: Tx, { id }: Payout): Sql => sql`
  (
    select distinct e.commission_id, -e.amount_minor as amount_minor, null::bigint as sale_amount_minor
    from program.payout p
    cross join lateral ${paidBy(sql`p`)}
    where p.organization_id = ${tx.organization_id} and p.id = ${id}
  ) as l on l.commission_id = t.id`;

/** Keeps what the statements of payouts that were sent, or paid, say of a sale whose amount is corrected. */
export const keepStatedAmount = (tx: Tx, before: Pick<Sale, 'id' | 'amount_minor'>): Promise<object[]> =>
  tx.all(sql`
    update program.payout_commission t
    set sale_amount_minor = ${before.amount_minor}
    from program.commission c
    join program.payout p on p.organization_id = c.organization_id and p.id = c.payout_id
    where ${tenant(tx)} and t.payout_id = c.payout_id and t.commission_id = c.id and t.sale_amount_minor is null
      and c.organization_id = ${tx.organization_id} and (p.status <> 'pending' or p.attempt > 0)
      and c.sale_id = ${before.id}`);

/** In words; a note of the merchant's, where there is one. */
function descriptionOf(kind: StatementLine['kind'], is_refunded: boolean, note: string | null): string {
  if (note !== null) return note;
  if (kind === 'bonus') return 'Bonus';
  if (kind === 'clawback') return is_refunded ? 'Taken back after a refund' : 'Taken back';
  return is_refunded ? 'Commission for a sale that was refunded in part' : 'Commission for a sale';
}
