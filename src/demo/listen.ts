import type { AddressInfo, ListenOptions } from 'node:net';

interface Listening {
  listen(options: ListenOptions, then: () => void): unknown;
  address(): string | AddressInfo | null;
  once(event: 'error', then: (error: Error & { code?: string }) => void): unknown;
  removeAllListeners(event: 'error'): unknown;
}

/** Listens on loopback at a port, or at any free one where that is taken. @returns the port */
export async function listenNear(server: Listening, wanted_port: number): Promise<number> {
  const listen = (port: number) =>
    new Promise<number>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ port, host: '127.0.0.1' }, () => {
        server.removeAllListeners('error');
        resolve((server.address() as AddressInfo).port);
      });
    });
  return listen(wanted_port).catch((error) => {
    server.removeAllListeners('error');
    if (error.code !== 'EADDRINUSE') throw error;
    return listen(0);
  });
}
