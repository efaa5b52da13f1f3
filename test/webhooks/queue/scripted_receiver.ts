import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** The answer of a receiver: a status, closing the connection, or 200 after more than a second, which makes it a slow one. */
export type Manner = 200 | 500 | 'close' | 'slow';
const manner_ms: Record<Manner, number> = { 200: 4, 500: 0, close: 0, slow: 1_050 };

/** A request as a receiver saw it. */
export interface Request {
  headers: Record<string, string>;
  raw: string;
  /** The time at which it came, in milliseconds. */
  at: number;
  /** The answer; undefined while there is none, and when its sender went away. */
  answered?: number | 'closed';
}

export interface ScriptedReceiver {
  url: string;
  /** From now on it answers so, or only the next so many requests; those after them with 200. */
  answer(manner: Manner, times?: number): void;
  /** The most requests that were there at once. */
  most_at_once(): number;
}

/** Receivers on one server of loopback, each under a path of its own. */
export async function startScriptedReceivers(t: { teardown(work: () => unknown): void }): Promise<{
  /** @param saw is told of each request when all of it is there, before it is answered */
  open(saw: (request: Request) => void): ScriptedReceiver;
}> {
  const behind: ((request: IncomingMessage, response: ServerResponse) => Promise<void>)[] = [];
  const server = createServer((request, response) => behind[Number(request.url?.slice(1))]?.(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    open(saw) {
      const { serve, ...receiver } = scripted(saw);
      return { ...receiver, url: `http://127.0.0.1:${port}/${behind.push(serve) - 1}` };
    },
  };
}

function scripted(saw: (request: Request) => void) {
  let manner: Manner = 200;
  let times = Number.POSITIVE_INFINITY;
  let at_once = 0;
  let most_at_once = 0;
  const next = (): Manner => (times-- > 0 ? manner : 200);
  return {
    answer(next_manner: Manner, next_times = Number.POSITIVE_INFINITY) {
      manner = next_manner;
      times = next_times;
    },
    most_at_once: () => most_at_once,
    async serve(incoming: IncomingMessage, response: ServerResponse) {
      most_at_once = Math.max(most_at_once, ++at_once);
      let isOn = true;
      const leave = () => {
        if (isOn) at_once--;
        isOn = false;
      };
      response.on('close', leave);
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk);
      const request: Request = {
        headers: incoming.headers as Record<string, string>,
        raw: Buffer.concat(chunks).toString('utf8'),
        at: Date.now(),
      };
      saw(request);
      const how = next();
      await sleep(manner_ms[how]);
      if (response.destroyed) return;
      leave();
      if (how === 'close') {
        request.answered = 'closed';
        incoming.socket.destroy();
      } else {
        request.answered = how === 'slow' ? 200 : how;
        response.writeHead(request.answered).end('ok');
      }
    },
  };
}
