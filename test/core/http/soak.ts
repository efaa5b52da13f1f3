/** `npm run soak -- api`: made-up requests to an API in a process of its own, for as long as it is told. */
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { callerOf, type Json, startRail } from '../../harness.ts';
import { type Process, startProcess } from '../../processes.ts';
import { answerOf, type GeneratedRequest, makeKnown, requestsOf } from './generated.ts';

/** What one request may keep the event loop busy for. */
const most_stall_ms = 200;
/** What one request may take at all. */
const most_request_ms = 30_000;
const progress_ms = 5_000;
/** Of these, the one that was running when the event loop stalled is found: more than are sent until that is told. */
const most_recent = 5_000;

interface Sent extends GeneratedRequest {
  from: number;
  to: number;
}

/**
 * Sends one request at a time. It fails where an answer is not as the description has it, where the service fails, and where a request
 * keeps the event loop busy for too long.
 * @param seed of the requests: the same one makes the same ones up
 */
export function soakApi({ seconds, seed }: { seconds: number; seed: number }): void {
  t.setTimeout((seconds + 180) * 1_000);
  t.test(`any request is answered as the description has it (--seed ${seed}, ${seconds} s)`, async () => {
    const rail = await startRail({ worker: false });
    const merchant = await rail.organization();
    /** Its requests have to be signed from some time on. */
    const signing = await rail.key(merchant.organization_id);
    const api = await startProcess('api', rail.url, {
      NODE_OPTIONS: `--import=${join(import.meta.dirname, 'watch_loop.ts')}`,
    });
    const to = ({ key, organization_id }: typeof merchant) => callerOf(api.url, key, organization_id);
    const [caller, signer] = [to(merchant), to(signing)];
    const document = await caller.get('/v1/openapi.json');
    const requests = requestsOf(document as never, await makeKnown(caller));
    const figures = watchFigures(api);
    const property = fc.asyncProperty(requests, async (request) => {
      const from = Date.now();
      const { status } = await answerOf(
        request.name.startsWith('inbound_signing.') ? signer : caller,
        request,
        document as never,
      );
      figures.add({ ...request, from, to: Date.now() }, status);
      figures.requireNoStall();
    });
    try {
      await fc.assert(property, {
        seed,
        numRuns: 1e9,
        interruptAfterTimeLimit: seconds * 1_000,
        timeout: most_request_ms,
        endOnFailure: true,
        includeErrorInReport: true,
      });
      await api.end('SIGTERM');
      figures.requireNoStall();
    } finally {
      figures.end();
    }
  });
}

/** Counts what was answered, and prints it every few seconds and at the end. */
function watchFigures(api: Process) {
  const began = Date.now();
  const by_status = new Map<number, number>();
  const recent: Sent[] = [];
  let requests = 0;
  let worst_ms = 0;
  const stalls: Json[] = [];
  const readStalls = () => {
    // Emptied, because it would hold a line for each request.
    for (const line of api.logged.splice(0)) {
      if (line.msg !== 'event loop stalled' || line.from < began) continue;
      worst_ms = Math.max(worst_ms, line.stall_ms);
      if (line.stall_ms >= most_stall_ms) stalls.push(line);
    }
  };
  const print = () => {
    readStalls();
    const statuses = [...by_status].toSorted(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`);
    const seconds = Math.round((Date.now() - began) / 1_000);
    process.stdout.write(
      `# ${seconds} s, ${requests} requests (${statuses.join(', ')}), worst stall of the API's event loop ${worst_ms} ms\n`,
    );
  };
  const timer = setInterval(print, progress_ms);
  return {
    add(sent: Sent, status: number) {
      requests++;
      by_status.set(status, (by_status.get(status) ?? 0) + 1);
      recent.push(sent);
      if (recent.length > most_recent) recent.shift();
    },
    /** @throws Error that says which request kept the event loop busy for too long */
    requireNoStall() {
      readStalls();
      const [stall] = stalls;
      if (!stall) return;
      const during = recent.filter(({ from, to }) => from <= stall.to && to >= stall.from);
      const shown = during.map(({ name, path, body }) => `${name} ${path} ${body}`).join('\n');
      throw new Error(`The event loop was kept busy for ${stall.stall_ms} ms by one of:\n${shown}`);
    },
    end() {
      clearInterval(timer);
      print();
    },
  };
}
