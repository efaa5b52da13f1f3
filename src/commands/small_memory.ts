import { setFlagsFromString } from 'node:v8';

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
  process.execve?.(process.execPath, [process.execPath, ...flags, ...process.execArgv, ...process.argv.slice(1)], {
    MALLOC_ARENA_MAX: '1',
    ...process.env,
  });
  for (const flag of growth) setFlagsFromString(flag);
}
