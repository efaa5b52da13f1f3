/** What a worker thread runs: it reads one bank report. */
import { parentPort, workerData } from 'node:worker_threads';
import { Problem } from '../../../core/values/problem.ts';
import { readBankReport } from '../bank/bank_report.ts';

function outcome(): object {
  try {
    return { report: readBankReport(workerData as string) };
  } catch (error) {
    if (error instanceof Problem) return { refusal: error.message };
    throw error;
  }
}

parentPort?.postMessage(outcome());
