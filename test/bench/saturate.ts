import type { Sample } from './harness.ts';
import { type Asked, closedLoop, latencies } from './load.ts';
import { cpuOf, type Running } from './processes.ts';

export const connections = 16;

export interface Saturated {
  server: Running;
  /** Undefined where it has no part in what is measured. */
  worker: Running | undefined;
  postgres: number | undefined;
  next: () => Asked;
  /** Waits for what follows from the load. @returns how many of its requests count for nothing */
  settle: () => Promise<number>;
}

/** The rate, latencies and CPU of requests, each sent when the one before on its connection was answered. */
export async function saturate(given: Saturated, seconds: number): Promise<Sample> {
  const { server, worker, postgres, next, settle } = given;
  const pids = { server_cpu: server.pid, postgres_cpu: postgres, worker_cpu: worker?.pid };
  const before = await cpuOf(pids);
  const load = await closedLoop(server.url, { connections, seconds, next });
  const { server_cpu } = await cpuOf({ server_cpu: pids.server_cpu });
  const uncounted = await settle();
  const after = { ...(await cpuOf(pids)), ...(server_cpu === undefined ? {} : { server_cpu }) };
  const requests = load.latencies_ms.length;
  const cpu = Object.entries(after).map(([name, us]) => [name, (us - (before[name] as number)) / requests]);
  return { ...latencies(load), requests: (requests - uncounted) / load.seconds, ...Object.fromEntries(cpu) };
}
