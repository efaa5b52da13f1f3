import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Received {
  event_id: string;
  delivery_id: string;
  attempt: string;
  /** The time at which it began, in milliseconds since 1970. */
  at: number;
}

/** The number of deliveries that may be sent to an endpoint and not be written yet. */
export const most_unwritten = 64;

/** Receivers on one server, each under a path of its own. */
export async function startReceivers(t: { teardown(work: () => unknown): void }, count: number) {
  const received: Received[][] = Array.from({ length: count }, () => []);
  const at_once: number[] = Array(count).fill(0);
  let most_at_once = 0;
  const server = createServer(async (request, response: ServerResponse) => {
    const nth = Number(request.url?.slice(1));
    at_once[nth] = (at_once[nth] as number) + 1;
    most_at_once = Math.max(most_at_once, at_once[nth]);
    response.on('close', () => {
      at_once[nth] = (at_once[nth] as number) - 1;
    });
    const header = (name: string) => request.headers[name] as string;
    const [event_id, delivery_id, attempt] = ['rail-event-id', 'rail-delivery-id', 'rail-attempt'].map(header);
    received[nth]?.push({ event_id, delivery_id, attempt, at: Date.now() } as Received);
    for await (const _ of request);
    await sleep(2);
    response.end('ok');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    urls: received.map((_, nth) => `http://127.0.0.1:${port}/${nth}`),
    received,
    count: () => received.reduce((sum, those) => sum + those.length, 0),
    most_at_once: () => most_at_once,
  };
}
