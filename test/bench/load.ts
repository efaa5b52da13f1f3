import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { percentile, type Sample } from './harness.ts';

export interface Asked {
  method: 'GET' | 'POST';
  path: string;
  headers?: Record<string, string>;
  body?: string;
}

/** The result of a load: the latency of each request, from its sending to the end of its response. */
export interface Load {
  latencies_ms: number[];
  seconds: number;
}

/**
 * Closed loop: each of `connections` sends its next request when the one before is answered, for so many seconds.
 * @param at_least so many requests a connection, even if they take longer
 * @throws Error when a response is not a success
 */
export async function closedLoop(
  url: string,
  {
    connections,
    seconds,
    next,
    at_least = 0,
  }: { connections: number; seconds: number; next: () => Asked; at_least?: number },
): Promise<Load> {
  await using stack = new AsyncDisposableStack();
  const client = stack.adopt(new Pool(url, { connections, pipelining: 1 }), (pool) => pool.destroy());
  const latencies_ms: number[] = [];
  const started = performance.now();
  const end = started + seconds * 1_000;
  const loop = async () => {
    for (let nth = 0; nth < at_least || performance.now() < end; nth++) latencies_ms.push(await timed(client, next()));
  };
  await Promise.all(Array.from({ length: connections }, loop));
  return { latencies_ms, seconds: (performance.now() - started) / 1_000 };
}

/**
 * Open loop: a request every 1/rate s, whether or not those before are answered. A latency begins when its request was due, so
 * that a stall of the service counts for every request that it kept waiting.
 */
export async function openLoop(
  url: string,
  { connections, seconds, rate, next }: { connections: number; seconds: number; rate: number; next: () => Asked },
): Promise<Load> {
  await using stack = new AsyncDisposableStack();
  const client = stack.adopt(new Pool(url, { connections, pipelining: 1 }), (pool) => pool.destroy());
  const sent: Promise<number>[] = [];
  const started = performance.now();
  for (let nth = 0; nth < seconds * rate; nth++) {
    const due = started + (nth * 1_000) / rate;
    const wait = due - performance.now();
    if (wait > 0) await sleep(wait);
    sent.push(timed(client, next(), due));
  }
  return { latencies_ms: await Promise.all(sent), seconds: (performance.now() - started) / 1_000 };
}

async function timed(client: Pool, asked: Asked, from = performance.now()): Promise<number> {
  const { statusCode, body } = await client.request(asked);
  const text = await body.text();
  if (statusCode >= 400) throw new Error(`${asked.method} ${asked.path} answered ${statusCode}: ${text}`);
  return performance.now() - from;
}

/** The system's clock in ms since 1970, finer than `Date.now()`: for times that are compared with those of another process. */
export function preciseClock(): () => number {
  const before = Date.now();
  let epoch = before;
  while (epoch === before) epoch = Date.now();
  const at = performance.now();
  return () => epoch + (performance.now() - at);
}

export const latencies = ({ latencies_ms }: Load): Sample => ({
  p50: percentile(latencies_ms, 50),
  p99: percentile(latencies_ms, 99),
});
