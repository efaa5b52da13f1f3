import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below those that Linux, macOS and Windows give to clients and to servers that ask for any port, above those of well-known services. */
const first = 20_000;
const last = 32_767;
const tries = 100;

/**
 * A free port of loopback that stays free while nobody asks for it by its number: a server that goes finds it again when it is back.
 * One that the system gives out can be the port of any program's connection by then.
 * @throws Error where hardly any is free
 */
export async function stablePort(): Promise<number> {
  for (let left = tries; left > 0; left--) {
    const port = randomInt(first, last + 1);
    if (await isFree(port)) return port;
  }
  throw new Error(`No free port was found between ${first} and ${last}.`);
}

/** Returns whether a server can listen on this port of loopback. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false;
    throw error;
  }
  server.close();
  await once(server, 'close');
  return true;
}
