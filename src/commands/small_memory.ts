import { flushCompileCache } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Room for what lives for one delivery, in MiB: what outgrows it must be collected at a far higher price. On a machine with much memory V8 lets it
 * grow to 64 for whoever makes many objects at once, such as a batch of payouts, and takes three times of that.
 */
const nursery = ['--min-semi-space-size=8', '--max-semi-space-size=16'];
const growth = ['--semi-space-growth-factor=1', '--heap-growing-percent=25'];
/** Somewhat more than the code of a worker takes, in MiB: until that is loaded, V8 would look for garbage at each quarter more, and find none. */
const start = ['--initial-old-space-size=64'];
export const flags = [...nursery, ...growth, ...start];

/**
 * On a large machine V8 lets garbage lie until half a gigabyte of it has gathered, and glibc keeps a heap for each thread; a worker is to
 * stay near 200 MB. Called before a command loads its code. Where the system can, the process starts itself anew in its place (same pid,
 * same streams), because the nursery and glibc's heaps are laid out at the start. V8 refuses code that was compiled under other flags: given
 * all of them at the start, it keeps the code of workers apart from that of the other commands; set later, each would overwrite the other's.
 */
export function keepMemorySmall(): void {
  if (flags.every((flag) => process.execArgv.includes(flag))) return;
  flushCompileCache(); // no other chance to keep what was compiled so far
  process.execve?.(process.execPath, [process.execPath, ...flags, ...process.execArgv, ...process.argv.slice(1)], {
    MALLOC_ARENA_MAX: '1',
    ...process.env,
  });
  for (const flag of growth) setFlagsFromString(flag);
}

const look_every_ms = 10_000;
/** The share of one CPU below which a process is idle. */
const rest_share = 0.05;

/**
 * V8 collects garbage while more of it is made. Of what a busy time took, such as the start or an hour of many requests, a process at rest would
 * keep some ten megabytes for as long as it rests: it collects once when it has come to rest. That takes less than a tenth of a second.
 * @returns what ends it
 */
export function collectAtRest(every_ms = look_every_ms): () => void {
  let collected = false;
  let used_us = cpuUs();
  const timer = setInterval(() => {
    const before_us = used_us;
    used_us = cpuUs();
    if (used_us - before_us >= every_ms * 1_000 * rest_share) collected = false;
    else if (!collected) {
      collected = true;
      collect();
      used_us = cpuUs();
    }
  }, every_ms).unref();
  return () => clearInterval(timer);
}

function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

let gc: (() => void) | undefined;

/** V8 gives its collector to code that is run after the flag is set, in a context of its own. */
function collect(): void {
  if (!gc) {
    setFlagsFromString('--expose-gc');
    gc = runInNewContext('gc') as () => void;
  }
  gc();
}
