import { monitorEventLoopDelay } from 'node:perf_hooks';
import fc from 'fast-check';
import t from 'tap';
import { startRail } from '../../harness.ts';
import { effort } from '../../runner/effort.ts';
import { answerOf, describe, makeKnown, requestsOf } from './generated.ts';

/** `npm run soak -- api` sends others, for as long as it is told. */
const seed = 1;
const requests = effort.generated_requests;

const rail = await startRail({ worker: false });
const caller = await rail.organization();
/** Its requests have to be signed from some time on. */
const signing = await rail.key(caller.organization_id);
const descriptions = await describe(caller);

t.test(`any request is answered as the description has it (seed ${seed}, ${requests} requests)`, async (t) => {
  const by_status = new Map<number, number>();
  const property = fc.asyncProperty(requestsOf(descriptions, await makeKnown(rail, caller)), async (request) => {
    const { status } = await answerOf(
      request.name.startsWith('inbound_signing.') ? signing : caller,
      request,
      descriptions,
    );
    by_status.set(status, (by_status.get(status) ?? 0) + 1);
  });
  const delay = monitorEventLoopDelay();
  delay.enable();
  await fc.assert(property, { seed, numRuns: requests, endOnFailure: true });
  t.comment(`longest stall of the event loop, which the client shares: ${Math.round(delay.max / 1e6)} ms`);
  t.comment(`answers by status: ${[...by_status].map(([status, count]) => `${status}: ${count}`).join(', ')}`);
  t.ok(
    [...by_status.keys()].some((status) => status < 300),
    'some succeed',
  );
  t.ok(by_status.has(400), 'some are refused');
  t.ok((by_status.get(401) ?? 0) < (by_status.get(400) ?? 0), 'and hardly any for its key');
});
