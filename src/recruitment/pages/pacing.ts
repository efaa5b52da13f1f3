/** Paces requests: at most one a second to a host, over all visits of a process. */
import { setTimeout as sleepFor } from 'node:timers/promises';

/** The time in milliseconds, and waiting. Tests have their own. */
export interface Clock {
  now(): number;
  /** @throws the signal's reason once that is aborted */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const system_clock: Clock = {
  now: () => performance.now(),
  sleep: async (ms, signal) => void (await sleepFor(ms, undefined, { signal })),
};

export interface Pacing {
  /**
   * Waits until the host may be asked. The next request waits for the interval, or for `delay_ms` where that is longer.
   * @throws the signal's reason once that is aborted
   */
  wait(host: string, delay_ms?: number, signal?: AbortSignal): Promise<void>;
  /** Sends nothing to a host for so many milliseconds from now: it said that it is asked too often. */
  hold(host: string, ms: number): void;
}

const default_interval_ms = 1_000;
/** Hosts are forgotten once they may be asked; they are swept when there are so many. */
const hosts_between_sweeps = 1_000;

export function createPacing({ interval_ms = default_interval_ms, clock = system_clock } = {}): Pacing {
  const next_at = new Map<string, number>();
  let sweep_at = hosts_between_sweeps;
  const sweep = (now: number) => {
    if (next_at.size < sweep_at) return;
    for (const [host, at] of next_at) if (at <= now) next_at.delete(host);
    sweep_at = next_at.size + hosts_between_sweeps;
  };
  return {
    async wait(host, delay_ms = 0, signal) {
      const now = clock.now();
      const at = Math.max(now, next_at.get(host) ?? 0);
      sweep(now);
      next_at.set(host, at + Math.max(interval_ms, delay_ms));
      if (at > now) await clock.sleep(at - now, signal);
    },
    hold(host, ms) {
      next_at.set(host, Math.max(next_at.get(host) ?? 0, clock.now() + ms));
    },
  };
}
