import { constants, PerformanceObserver } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { collectAtRest } from '../../src/commands/small_memory.ts';

const forced: unknown[] = [];
const observer = new PerformanceObserver((list) => {
  const collections = list.getEntries() as unknown as { detail: { flags: number } }[];
  forced.push(...collections.filter(({ detail }) => (detail.flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) !== 0));
});

async function until(count: number): Promise<void> {
  while (forced.length < count) await sleep(5);
}

/** Takes a whole CPU for so long. */
function work(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}

t.test('collects garbage once when it comes to rest, and again after it was busy', async (t) => {
  observer.observe({ entryTypes: ['gc'] });
  const stop = collectAtRest(100);
  await until(1);
  await sleep(1_000);
  // Other work of this process may make it busy again.
  t.ok(forced.length < 5, `${forced.length} in 10 looks`);
  const before = forced.length;
  work(300);
  await until(before + 1);
  stop();
  observer.disconnect();
});
