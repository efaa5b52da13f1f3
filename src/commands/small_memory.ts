import { setFlagsFromString } from 'node:v8';

/**
 * On a large machine V8 lets garbage lie until half a gigabyte of it has gathered; a worker is to stay below 200 MB. Called before a command
 * loads its code, because what the heap has grown to by then stays.
 */
export function keepMemorySmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--heap-growing-percent=10');
}
