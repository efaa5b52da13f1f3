import { TimedThread, TookTooLong } from '../../../core/threads/timed_thread.ts';
import { Problem } from '../../../core/values/problem.ts';
import { type BankReport, readBankReport } from '../bank/bank_report.ts';

/** In characters. A longer report takes longer to read than other requests should wait. */
const most_at_once = 32_768;
/** Long reports take turns: each needs memory in proportion to its length. */
const thread = new TimedThread<string, Outcome>(new URL('./report_thread.ts', import.meta.url), {
  ...{ name: 'Reading a bank report', most_ms: 30_000, most_heap_mib: 512 },
});

/** A problem cannot go from one thread to another. */
export type Outcome = { report: BankReport } | { refusal: string };

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
  const reading = readInThread(document);
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

async function readInThread(document: string): Promise<BankReport> {
  const outcome = await thread.ask(document).catch((error) => {
    if (error instanceof TookTooLong)
      return { refusal: 'The report takes too long to read. Ask your bank for shorter ones.' };
    throw error;
  });
  if ('report' in outcome) return outcome.report;
  throw new Problem('invalid_parameter', outcome.refusal, { param: 'document' });
}
