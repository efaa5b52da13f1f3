import { csvLine, headerLine } from '../../../core/formats/csv.ts';
import { requireThatItAddsUp, type Statement, type StatementLine } from './statement.ts';

const columns = [
  'statement_number',
  'payout_id',
  'date',
  'commission_id',
  'kind',
  'sale_reference',
  'description',
  'sale_amount_minor',
  'amount_minor',
  'currency',
];
/**
 * The statement as a CSV file, a line for each commission. Amounts are in minor units, as in all lists. There is no line of totals: the column
 * `amount_minor` adds up to the payout.
 *
 * @throws RangeError when the statement does not add up
 */
export function* statementCsv(statement: Statement): Generator<string> {
  requireThatItAddsUp(statement);
  const line = csvLine(columns);
  yield headerLine(columns);
  for (const statement_line of statement.lines) yield line(rowOf(statement, statement_line));
}

const rowOf = ({ number, payout, currency }: Statement, line: StatementLine): Record<string, unknown> => ({
  ...line,
  statement_number: number,
  payout_id: payout.id,
  currency,
});
