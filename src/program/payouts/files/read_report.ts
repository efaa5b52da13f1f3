import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { Problem } from '../../../core/values/problem.ts';
import { type BankReport, readBankReport } from '../bank/bank_report.ts';

/** In characters. A longer report takes longer to read than other requests should wait. */
const most_at_once = 32_768;
const thread_memory_mb = 512;

/** Threads take turns: each needs memory in proportion to its report. */
let last: Promise<unknown> = Promise.resolve();

/** Reads a bank's report: a long one in a thread, so that other requests go on meanwhile. @throws Problem invalid_parameter */
export async function readReport(document: string): Promise<BankReport> {
  if (document.length <= most_at_once) return readBankReport(document);
  const reading = last.then(() => readInThread(document));
  last = reading.catch(() => {});
  return reading;
}

function readInThread(document: string): Promise<BankReport> {
  const thread = new Worker(join(import.meta.dirname, 'report_thread.ts'), {
    workerData: document,
    resourceLimits: { maxOldGenerationSizeMb: thread_memory_mb },
  });
  return new Promise((resolve, reject) => {
    thread.once('message', ({ report, refusal }: { report?: BankReport; refusal?: string }) => {
      if (report) resolve(report);
      else reject(new Problem('invalid_parameter', refusal as string, { param: 'document' }));
    });
    thread.once('error', reject);
    thread.once('exit', () => reject(new Error('The thread that reads a report has ended without one.')));
  });
}
