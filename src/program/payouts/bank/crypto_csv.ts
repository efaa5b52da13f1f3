import { csvLine, headerLine } from '../../../core/formats/csv.ts';
import { decimalCell } from './amount.ts';

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

const columns = ['payout_id', 'partner', 'network', 'address', 'amount', 'currency', 'reference'];

/**
 * The payouts of the method `crypto` as a CSV file, a line at a time. Amounts are decimals with the digits of the currency in which the
 * partner earned: converting it is left to whoever pays.
 */
export async function* cryptoCsv(
  payouts: Iterable<CryptoPayout> | AsyncIterable<CryptoPayout>,
): AsyncGenerator<string> {
  const line = csvLine(columns);
  yield headerLine(columns);
  for await (const payout of payouts)
    yield line({ ...payout, amount: decimalCell(payout.amount_minor, payout.currency) });
}
