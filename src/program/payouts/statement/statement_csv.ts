import { csvLine, headerLine } from '../../../core/formats/csv.ts';
import { decimalCell } from '../bank/amount.ts';
import { requireThatItAddsUp, type Statement, type StatementLine } from './statement.ts';

const columns = [
  'statement_number',
  'payout_id',
  'date',
  'commission_id',
  'kind',
  'sale_reference',
  'description',
  'sale_amount',
  'amount',
  'currency',
];
/**
 * The statement as a CSV file, a line for each commission. Amounts are decimals with the digits of the currency. There is no line of totals:
 * the column `amount` adds up to the payout.
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
  sale_amount: line.sale_amount_minor === null ? null : decimalCell(line.sale_amount_minor, currency),
  amount: decimalCell(line.amount_minor, currency),
  currency,
});
