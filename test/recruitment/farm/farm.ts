import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';
import type { Clock } from '../../../src/recruitment/pages/pacing.ts';
import { createVisitor } from '../../../src/recruitment/pages/visitor.ts';
import { type Reply as NameReply, type RecordType, startNameServer } from '../../core/net/name_server.ts';

/** A page of a site: its HTML, or a whole answer. */
export type Page =
  | string
  | { status?: number; type?: string; headers?: Record<string, string>; body?: string | Buffer }
  | ((request: IncomingMessage, response: ServerResponse) => void);

/** A site of the farm: its pages by path; mail exchangers and addresses as its zone has them. Every site is at 127.0.0.1 unless it says otherwise. */
export interface Site {
  host: string;
  pages: Record<string, Page>;
  addresses?: string[];
  /** `10 mail.example.com`; `null` where the name server fails. */
  exchangers?: string[] | null;
}

type FarmOptions = { clock?: Clock; interval_ms?: number; timeout_ms?: number };

/** A busy machine is no slow host. */
const patient_ms = 60_000;

/**
 * Sites on loopback: one HTTP server that tells them by the Host header, and a DNS server of their names. Names lead to the server's own
 * address, which the visitor is told to trust; any other private address is refused as in production.
 */
export async function startFarm(t: Test, sites: Site[], options: FarmOptions = {}) {
  const by_host = new Map(sites.map((site) => [site.host, site]));
  const requests: { host: string; path: string; headers: IncomingMessage['headers'] }[] = [];
  const server = createServer({ maxHeaderSize: 65_536 }, (request, response) => {
    const host = String(request.headers.host).replace(/:\d+$/, '');
    requests.push({ host, path: String(request.url), headers: request.headers });
    answer(by_host.get(host)?.pages[String(request.url)], request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const { nameServers } = await startNameServer(
    t,
    (name, type) => addressesOf(by_host.get(name), type),
    (name) => exchangersOf(by_host.get(name)),
  );
  const visitorWith = (own: FarmOptions) => {
    const visitor = createVisitor({
      ...{ base_url: 'https://rail.example.com', allowPrivate: false, ownHosts: ['rail.example.com'] },
      ...{ trustedAddresses: ['127.0.0.1'], nameServers, interval_ms: 0, timeout_ms: patient_ms, ...own },
    });
    t.teardown(() => visitor.close());
    return visitor;
  };
  const visitor = visitorWith(options);
  const url = (host: string, path = '/') => `http://${host}:${port}${path}`;
  return { visitor, visitorWith, requests, url, port, nameServers };
}

function answer(page: Page | undefined, request: IncomingMessage, response: ServerResponse): void {
  if (typeof page === 'function') {
    page(request, response);
    return;
  }
  const {
    status = 200,
    type = 'text/html; charset=utf-8',
    headers = {},
    body = '',
  } = page === undefined ? { status: 404 } : typeof page === 'string' ? { body: page } : page;
  response.writeHead(status, type === '' ? headers : { 'content-type': type, ...headers }).end(body);
}

function addressesOf(site: Site | undefined, type: RecordType): NameReply | string[] {
  if (!site) return { rcode: 3 };
  const addresses = site.addresses ?? ['127.0.0.1'];
  return addresses.filter((address) => address.includes(':') === (type === 'AAAA'));
}

function exchangersOf(site: Site | undefined): NameReply | string[] {
  if (!site) return { rcode: 3 };
  return site.exchangers === null ? { rcode: 2 } : (site.exchangers ?? []);
}
