import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { Problem } from '../../../core/values/problem.ts';
import { type BankReport, readBankReport } from '../bank/bank_report.ts';

/** In characters. A longer report takes longer to read than other requests should wait. */
const most_at_once = 32_768;
const thread_memory_mb = 512;

/** Threads take turns: each needs memory in proportion to its report. */
let last: Promise<unknown> = Promise.resolve();

/** Long reports of an organization that are read or wait for their turn: who sends more would keep all others waiting. */
const most_of_organization = 2;
const reading_of = new Map<string, number>();

/**
 * Reads a bank's report: a long one in a thread, so that other requests go on meanwhile.
 * @throws Problem invalid_parameter, rate_limit_exceeded
 */
export async function readReport(document: string, organization_id: string): Promise<BankReport> {
  if (document.length <= most_at_once) return readBankReport(document);
  const own = reading_of.get(organization_id) ?? 0;
  if (own >= most_of_organization) throw tooMany(own);
  reading_of.set(organization_id, own + 1);
  const reading = last.then(() => readInThread(document));
  last = reading.catch(() => {});
  return reading.finally(() => {
    const left = (reading_of.get(organization_id) as number) - 1;
    if (left === 0) reading_of.delete(organization_id);
    else reading_of.set(organization_id, left);
  });
}

const tooMany = (own: number): Problem =>
  new Problem(
    'rate_limit_exceeded',
    `Your organization has sent ${own} long reports that are not read yet. Retry in some seconds.`,
    { headers: { 'Retry-After': '5' } },
  );

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
