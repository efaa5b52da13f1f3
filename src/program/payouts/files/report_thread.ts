/** The thread that reads bank reports. */
import { answerTasks } from '../../../core/threads/answer_tasks.ts';
import { Problem } from '../../../core/values/problem.ts';
import { type BankReport, readBankReport } from '../bank/bank_report.ts';
import { isAttemptKey } from '../bank/identifier.ts';
import type { Outcome } from './read_report.ts';

answerTasks((document: string): Outcome => {
  try {
    return { report: withoutForeign(readBankReport(document)) };
  } catch (error) {
    if (error instanceof Problem) return { refusal: error.message };
    throw error;
  }
});

/** Removes an account's other payments: those that have no payout's id are only counted. */
function withoutForeign(report: BankReport): BankReport {
  if (report.kind !== 'camt.054') return report;
  const transfers = report.transfers.filter(({ end_to_end_id }) => isAttemptKey(end_to_end_id));
  return { ...report, transfers, without_id: report.without_id + report.transfers.length - transfers.length };
}
