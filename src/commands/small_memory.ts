import { setFlagsFromString } from 'node:v8';

/** Room for what lives for one delivery, in MiB: what outgrows it must be collected at a far higher price. */
const nursery = '--min-semi-space-size=8';

/**
 * On a large machine V8 lets garbage lie until half a gigabyte of it has gathered, and glibc keeps a heap for each thread; a worker is to
 * stay below 200 MB. Called before a command loads its code. Where the system can, the process starts itself anew in its place (same pid,
 * same streams), because the nursery and glibc's heaps are laid out at the start.
 */
export function keepMemorySmall(): void {
  if (!process.execArgv.includes(nursery)) {
    process.execve?.(process.execPath, [process.execPath, nursery, ...process.execArgv, ...process.argv.slice(1)], {
      MALLOC_ARENA_MAX: '1',
      ...process.env,
    });
  }
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--heap-growing-percent=10');
}
