/** What a thread runs: it reads bank reports. */
import { answerTasks } from '../../../core/threads/answer_tasks.ts';
import { Problem } from '../../../core/values/problem.ts';
import { readBankReport } from '../bank/bank_report.ts';
import type { Outcome } from './read_report.ts';

answerTasks((document: string): Outcome => {
  try {
    return { report: readBankReport(document) };
  } catch (error) {
    if (error instanceof Problem) return { refusal: error.message };
    throw error;
  }
});
