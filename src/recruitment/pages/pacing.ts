/** At most one request a second to a host: what a process shares between all that it visits. */
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
   * Waits for the host's next turn. The turn after it comes after the interval, or after `delay_ms` where that is longer.
   * @throws the signal's reason once that is aborted
   */
  turn(host: string, delay_ms?: number, signal?: AbortSignal): Promise<void>;
  /** No turn of this host begins within so many milliseconds from now: it said that it is asked too much. */
  hold(host: string, ms: number): void;
}

const default_interval_ms = 1_000;
/** Hosts are forgotten when their next turn is due; they are looked through when there are so many. */
const hosts_between_sweeps = 1_000;

export function createPacing({ interval_ms = default_interval_ms, clock = system_clock } = {}): Pacing {
  const next_turns = new Map<string, number>();
  let sweep_at = hosts_between_sweeps;
  const sweep = (now: number) => {
    if (next_turns.size < sweep_at) return;
    for (const [host, at] of next_turns) if (at <= now) next_turns.delete(host);
    sweep_at = next_turns.size + hosts_between_sweeps;
  };
  return {
    async turn(host, delay_ms = 0, signal) {
      const now = clock.now();
      const at = Math.max(now, next_turns.get(host) ?? 0);
      sweep(now);
      next_turns.set(host, at + Math.max(interval_ms, delay_ms));
      if (at > now) await clock.sleep(at - now, signal);
    },
    hold(host, ms) {
      next_turns.set(host, Math.max(next_turns.get(host) ?? 0, clock.now() + ms));
    },
  };
}
