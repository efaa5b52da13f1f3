import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { request } from 'undici';
import { selfSigned } from '../../../src/demo/authority.ts';

/** The headers that a reverse proxy passes on as they came. */
const passed_on = ['origin', 'user-agent', 'cookie', 'content-type', 'sec-fetch-site', 'accept'];

export interface Websites {
  port: number;
  /** `https://acme.test:41234` of `acme.test`. */
  origin(host: string): string;
  /** Serves a page at a host and path, whatever the query. */
  page(host: string, path: string, body: string, headers?: Record<string, string>): string;
  /** While true, `/_rail/` of every host answers 502. */
  is_cut_off: boolean;
}

/**
 * Websites of any host below `.test`, by https. Each has Rail at `/_rail/`, as the recipes of the documentation set it up; `rail.test` is Rail itself, on a domain of
 * its own.
 */
export async function startWebsites(rail_address: string): Promise<Websites> {
  const pages = new Map<string, { body: string; headers: Record<string, string> }>();
  const server = createServer(selfSigned({ name: 'acme.test' }), async (incoming, response) => {
    const host = String(incoming.headers.host).replace(/:\d+$/, '');
    const url = String(incoming.url);
    const path = url.replace(/\?.*/, '');
    const forwarded = host === 'rail.test' ? url : /^\/_rail(\/.*)/.exec(url)?.[1];
    const page = pages.get(host + path);
    if (forwarded !== undefined && sites.is_cut_off) response.writeHead(502).end();
    else if (forwarded === undefined) {
      response
        .writeHead(page ? 200 : 404, { 'content-type': 'text/html; charset=utf-8', ...page?.headers })
        .end(page?.body ?? '');
    } else {
      const headers = Object.fromEntries(
        passed_on.flatMap((name) => (incoming.headers[name] ? [[name, incoming.headers[name]]] : [])),
      );
      const body = incoming.method === 'POST' ? Buffer.concat(await Array.fromAsync(incoming)) : null;
      const answer = await request(rail_address + forwarded, {
        method: incoming.method as 'GET',
        headers: headers as Record<string, string>,
        body,
      });
      const { connection: _, 'transfer-encoding': __, ...given } = answer.headers;
      response
        .writeHead(answer.statusCode, given as Record<string, string>)
        .end(Buffer.from(await answer.body.arrayBuffer()));
    }
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const sites: Websites = {
    port,
    is_cut_off: false,
    origin: (host) => `https://${host}:${port}`,
    page(host, path, body, headers = {}) {
      pages.set(host + path, { body: `<!doctype html><link rel="icon" href="data:,"><body>${body}`, headers });
      return `https://${host}:${port}${path}`;
    },
  };
  return sites;
}
