import { monitorEventLoopDelay } from 'node:perf_hooks';
import fc from 'fast-check';
import t from 'tap';
import { startRail } from '../../harness.ts';
import { resources, World } from '../../samples.ts';
import { answerOf, type Known, requestsOf } from './generated.ts';

/** `npm run soak -- api` runs the same for as long as it is told, from another seed each time. */
const seed = Number(process.env.RAIL_SOAK_SEED ?? 1);
const seconds = Number(process.env.RAIL_SOAK_SECONDS ?? 15);

const rail = await startRail({ worker: false });
const caller = await rail.organization();
/** Its requests have to be signed from some time on. */
const signing = await rail.key(caller.organization_id);
const document = await caller.get('/v1/openapi.json');

/** One object of each kind that the API can make without a worker. */
async function makeKnown(): Promise<Known> {
  const world = new World(caller, 'http://127.0.0.1:9/');
  const made = ['programs', 'groups', 'tags', 'partners', 'links', 'coupons', 'clicks', 'customers', 'rules', 'sales'];
  const known: Known = {};
  for (const plural of [...made, 'commissions', 'webhook_endpoints', 'applications']) {
    if (resources.includes(plural)) known[plural] = [(await world.fixture(plural)).id];
  }
  return known;
}

t.setTimeout((seconds + 120) * 1_000);

t.test(`any request is answered as the description has it (seed ${seed}, ${seconds} s)`, async (t) => {
  const by_status = new Map<number, number>();
  const property = fc.asyncProperty(requestsOf(document as never, await makeKnown()), async (request) => {
    const { status } = await answerOf(
      request.name.startsWith('inbound_signing.') ? signing : caller,
      request,
      document as never,
    );
    by_status.set(status, (by_status.get(status) ?? 0) + 1);
  });
  const delay = monitorEventLoopDelay();
  delay.enable();
  await fc.assert(property, {
    seed,
    numRuns: 1_000_000,
    interruptAfterTimeLimit: seconds * 1_000,
    endOnFailure: true,
  });
  t.comment(`longest stall of the event loop, which the client shares: ${Math.round(delay.max / 1e6)} ms`);
  t.comment(`answers by status: ${[...by_status].map(([status, count]) => `${status}: ${count}`).join(', ')}`);
  t.ok(
    [...by_status.keys()].some((status) => status < 300),
    'some succeed',
  );
  t.ok(by_status.has(400), 'some are refused');
  t.ok((by_status.get(401) ?? 0) < (by_status.get(400) ?? 0), 'and hardly any for its key');
});
