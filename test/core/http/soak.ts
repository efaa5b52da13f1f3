/** `npm run soak -- api`: made-up requests to an API in a process of its own, for as long as it is told. */
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { callerOf, type Json, startRail } from '../../harness.ts';
import { type Process, startProcess } from '../../processes.ts';
import { answerOf, describe, type GeneratedRequest, makeKnown, requestsOf } from './generated.ts';

/** The time for which one request may keep the event loop busy. */
const most_stall_ms = 200;
/** The time of one request. */
const most_request_ms = 30_000;
const progress_ms = 5_000;
/** The recent requests among which the one that ran when the event loop stalled is found: more than are sent until the stall is reported. */
const most_recent = 5_000;

/** The length of a request in a message. */
const most_shown = 2_000;

interface Sent extends GeneratedRequest {
  from: number;
  to: number;
}

/**
 * Sends one request at a time to all operations of all products. It fails where an answer is not as the description has it, where the
 * service fails, and where a request keeps the event loop busy for too long: at the end, so that it finds them all.
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
    const descriptions = await describe(caller);
    const requests = requestsOf(descriptions, await makeKnown(rail, merchant));
    const figures = watchFigures(api);
    const property = fc.asyncProperty(requests, async (request) => {
      const from = Date.now();
      const asker = request.name.startsWith('inbound_signing.') ? signer : caller;
      const answer = await answerOf(asker, request, descriptions).catch((error: Error) => error);
      const sent = { ...request, from, to: Date.now() };
      if (answer instanceof Error) figures.addFault(request.name, answer.message);
      else figures.add(sent, answer.status);
      if (sent.to - from > most_request_ms) figures.addFault(request.name, `${request.path} took ${sent.to - from} ms`);
    });
    await fc.assert(property, { seed, numRuns: 1e9, interruptAfterTimeLimit: seconds * 1_000 });
    await api.end('SIGTERM');
    const faults = figures.end();
    if (faults.length > 0) throw new Error(faults.join('\n'));
  });
}

/** Counts what was answered, and prints it every few seconds and at the end. */
function watchFigures(api: Process) {
  const began = Date.now();
  const by_status = new Map<number, number>();
  const recent: Sent[] = [];
  let requests = 0;
  let worst_ms = 0;
  /** The first one of each operation, and how many there were. */
  const faults = new Map<string, { first: string; count: number }>();
  const addFault = (name: string, text: string) => {
    const { first = text, count = 0 } = faults.get(name) ?? {};
    if (count === 0) process.stdout.write(`# ${name}: ${text}\n`);
    faults.set(name, { first, count: count + 1 });
  };
  const readStalls = () => {
    // Emptied, because it would hold a line for each request.
    for (const line of api.logged.splice(0)) {
      if (line.msg !== 'event loop stalled' || line.from < began) continue;
      worst_ms = Math.max(worst_ms, line.stall_ms);
      if (line.stall_ms >= most_stall_ms) addFault(...stallDuring(recent, line));
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
    addFault,
    add(sent: Sent, status: number) {
      requests++;
      by_status.set(status, (by_status.get(status) ?? 0) + 1);
      recent.push(sent);
      if (recent.length > most_recent) recent.shift();
    },
    /** @returns what was found, a line for each operation */
    end(): string[] {
      clearInterval(timer);
      print();
      return [...faults].map(([name, { first, count }]) => `${name}, ${count} times, first: ${first}`);
    },
  };
}

/** Whatever was asked while the event loop was kept busy for too long. */
function stallDuring(recent: Sent[], { stall_ms, from, to }: Json): [name: string, text: string] {
  const during = recent.filter((sent) => sent.from <= to && sent.to >= from);
  const shown = during.map(({ name, path, body }) => `${name} ${path} ${body}`.slice(0, most_shown)).join('\n');
  const names = during.map(({ name }) => name).join(', ');
  return [`event loop, by ${names}`, `it was kept busy for ${stall_ms} ms by one of:\n${shown}`];
}
