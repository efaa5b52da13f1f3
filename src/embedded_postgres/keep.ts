import { setTimeout as sleep } from 'node:timers/promises';

const poll_ms = 200;
const first_wait_ms = 1_000;
const most_wait_ms = 10_000;

type Log = (line: string, level: 'info' | 'warn') => void;
/** @returns the pid of the process that runs now  @throws Error that says why none does */
type Start = (stopping: AbortSignal) => Promise<number>;

/** A process that is started again whenever it has died. */
export interface Kept {
  /** Lets it be, whatever becomes of it. */
  end(): Promise<void>;
}

/** Keeps Postgres running from now on: it may have been killed, or have given up because its disk was full. */
export function keep(pid: number, start: Start, log: Log): Kept {
  const stopping = new AbortController();
  const ended = keepUntil(stopping.signal, pid, start, log).catch((error) => {
    if (!stopping.signal.aborted) throw error;
  });
  return {
    async end() {
      stopping.abort();
      await ended;
    },
  };
}

async function keepUntil(stopping: AbortSignal, first_pid: number, start: Start, log: Log): Promise<void> {
  for (let pid = first_pid; ; await sleep(poll_ms, undefined, { signal: stopping, ref: false })) {
    if (isProcess(pid)) continue;
    log(`Postgres (pid ${pid}) has ended; starting it again.`, 'warn');
    pid = await startUntilItRuns(stopping, start, log);
    log(`Postgres is running again (pid ${pid}).`, 'info');
  }
}

async function startUntilItRuns(stopping: AbortSignal, start: Start, log: Log): Promise<number> {
  for (let wait_ms = first_wait_ms; ; wait_ms = Math.min(wait_ms * 2, most_wait_ms)) {
    try {
      return await start(stopping);
    } catch (error) {
      stopping.throwIfAborted();
      log(`${(error as Error).message} Trying again in ${wait_ms / 1_000} s.`, 'warn');
    }
    await sleep(wait_ms, undefined, { signal: stopping });
  }
}

/** Returns whether a process has this id: of whatever program, and of whatever user. */
export function isProcess(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
