import {
  type Statement,
  type StatementLine,
  statementTotals,
} from '../../../../src/program/payouts/statement/statement.ts';

const suffix = '01h455vb4pex5vsknk084sn02q';

export const line = (changes: Partial<StatementLine> = {}): StatementLine => ({
  date: '2026-10-03T10:11:12.000Z',
  commission_id: `com_${suffix}`,
  kind: 'sale',
  sale_reference: 'ch_0001',
  sale_amount_minor: 9900,
  description: 'Commission for a sale',
  amount_minor: 1980,
  ...changes,
});

/** A statement of these lines that adds up. */
export function statement(lines: StatementLine[] = [line()], changes: Partial<Statement> = {}): Statement {
  const totals = statementTotals(lines);
  return {
    number: 'S-2026-000123',
    livemode: true,
    program: { id: `prg_${suffix}`, name: 'Acme GmbH' },
    partner: { id: `part_${suffix}`, name: 'Ada Lovelace', email: 'ada@partner.example.com' },
    period_start: '2026-10-01T00:00:00.000Z',
    period_end: '2026-11-01T00:00:00.000Z',
    currency: 'EUR',
    payout: {
      id: `pyt_${suffix}`,
      status: 'paid',
      amount_minor: totals.total_minor,
      fee_minor: 35,
      method: 'bank_transfer',
      destination_hint: '3000',
      paid_at: '2026-11-17T09:12:33.000Z',
      external_id: 'BANK-REF-1',
    },
    lines,
    totals,
    ...changes,
  };
}
