import { stringify } from 'csv-stringify/sync';
import { decimal } from './amount.ts';
import { csvText } from './csv_cell.ts';

export interface CryptoPayout {
  payout_id: string;
  /** The partner's name. */
  partner: string;
  network: string;
  address: string;
  amount_minor: number;
  currency: string;
  reference: string;
}

const columns = ['payout_id', 'partner', 'network', 'address', 'amount', 'currency', 'reference'] as const;

/**
 * The payouts of the method `crypto` as a CSV file with a header (RFC 4180), a line at a time. Amounts are decimals with the digits of the
 * currency in which the partner earned: converting it is left to whoever pays.
 */
export async function* cryptoCsv(
  payouts: Iterable<CryptoPayout> | AsyncIterable<CryptoPayout>,
): AsyncGenerator<string> {
  yield line([...columns]);
  for await (const payout of payouts) {
    const row = { ...payout, amount: decimal(payout.amount_minor, payout.currency) };
    yield line(columns.map((column) => (column === 'amount' ? row.amount : csvText(row[column]))));
  }
}

const line = (cells: string[]): string => stringify([cells], { record_delimiter: 'windows' });
