import fc from 'fast-check';
import t from 'tap';
import { startRail } from '../../harness.ts';
import { type Process, startProcess, stopClocks } from '../../processes.ts';
import { effort, seeded } from '../../runner/effort.ts';
import { openShop } from '../../shop.ts';
import { faultsOf, notePlaces } from './delivery_laws.ts';
import { comeToRest, command, commands, type Model } from './model_commands.ts';
import { startScriptedReceivers } from './scripted_receiver.ts';
import { watchEndpoints } from './watched_endpoints.ts';

/** `MODEL_RUNS=500 MODEL_SEED=1 node test/run.ts test/webhooks/queue/model.test.ts`: a soak, or the same runs once more. */
const runs = Number(process.env.MODEL_RUNS ?? effort.queue_model_runs);
const seed = Number(process.env.MODEL_SEED ?? seeded.seed ?? Date.now() % 1_000_000_000);

// Fewer runs have the time that every file has.
if (runs > 16) t.setTimeout(120_000 + runs * 30_000);

const rail = await startRail({ worker: false });
await stopClocks(rail);
await notePlaces(rail);
const merchant = await rail.organization();
const receivers = await startScriptedReceivers(t);
const startWorker = () => startProcess('worker', rail.url, { WORKER_CONCURRENCY: '1' });
const ends = fc.tuple(fc.nat({ max: 1 }), fc.constantFrom('SIGTERM' as const, 'SIGKILL' as const)).map(end);
const workers: Promise<Process>[] = [startWorker(), startWorker()];

t.test(
  'whatever happens, each endpoint sees its events at least once, in sequence, one at a time, and signed',
  async (t) => {
    t.comment(`seed ${seed}`);
    const property = fc.asyncProperty(
      fc.commands([...commands, ...[ends, ends]], { maxCommands: 20, size: 'max' }),
      async (happenings) => {
        const shop = await watchEndpoints(rail, await openShop(rail, {}, merchant), receivers);
        const model: Model = { told: [], isEnabled: [true, true, true], wanted: [new Map(), new Map(), new Map()] };
        await fc.asyncModelRun(() => ({ model, real: shop }), happenings);
        await comeToRest(shop);
        const faults = await faultsOf(rail, shop, model.told, model.wanted);
        if (faults.length > 0) throw new Error(faults.join('\n'));
      },
    );
    await fc.assert(property, { numRuns: runs, seed, endOnFailure: true });
    t.pass(`${runs} runs`);
  },
);

t.test('leaves clean data behind', async (t) => {
  t.same(await rail.audit(), []);
  for (const worker of await Promise.all(workers)) t.equal(await worker.end('SIGTERM'), 0);
});

/** A worker ends, and another one begins. One that is killed lets come again what it had sent and not written. */
function end([which, signal]: [number, 'SIGTERM' | 'SIGKILL']) {
  return command(`end(${which}, ${signal})`, async (_, shop) => {
    const worker = await (workers[which] as Promise<Process>);
    if (signal === 'SIGKILL') for (const { history } of shop.endpoints) history.push({ what: 'killing' });
    await worker.end(signal);
    workers[which] = startWorker();
  });
}
