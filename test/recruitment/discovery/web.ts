/** A few sites on loopback, each at a host of its own under `.test`, for searches and scans. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { startNameServer } from '../../core/net/name_server.ts';
import { type Caller, eventually, type Json } from '../../harness.ts';

type Reply = string | { status: number; body?: string; location?: string } | 'hang';

export interface Web {
  /** The address of a page of a host. */
  at(host: string, path?: string): string;
  /** The answers of a host, by path; `/robots.txt` is 404 unless it is given. */
  sites: Map<string, Record<string, Reply>>;
  /** Host and path of each request. */
  asked: string[];
  name_servers: string[];
}

export async function startWeb(): Promise<Web> {
  const server = createServer((request, response) => {
    const host = (request.headers.host ?? '').split(':')[0] ?? '';
    const path = request.url ?? '/';
    web.asked.push(`${host}${path}`);
    const reply = web.sites.get(host)?.[path] ?? { status: 404 };
    if (reply === 'hang') return;
    const { status, body = '', location } = typeof reply === 'string' ? { status: 200, body: reply } : reply;
    const type = path === '/robots.txt' ? 'text/plain' : 'text/html; charset=utf-8';
    response.writeHead(status, { 'content-type': type, ...(location && { location }) }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const names = await startNameServer(
    t as unknown as Test,
    (name, type) => (/^(?:www\.)?gone/.test(name) ? { rcode: 3 } : type === 'A' ? ['127.0.0.1'] : []),
    (name) => [`10 mail.${name}`],
  );
  const web: Web = {
    at: (host, path = '/') => `http://${host}:${port}${path}`,
    sites: new Map(),
    asked: [],
    name_servers: names.nameServers,
  };
  return web;
}

/** A blog that links to a competitor and to an affiliate network. */
export const blog = (title: string): string => `<!doctype html><html lang="en"><head><title>${title}</title>
<meta name="description" content="All about sourdough and ovens"></head><body><h1>${title}</h1>
<p>We compared sourdough ovens, and the review is long enough to be told in English by anybody who reads it.</p>
<a href="https://rival.test/oven">The rival's oven</a> <a href="https://www.awin1.com/cread.php?awinmid=1&awinaffid=2">Buy</a></body></html>`;

export const shop = '<!doctype html><html lang="en"><title>Ovens for sourdough</title><p>We sell ovens.</p></html>';

export const base = '/recruitment/v1';

/** A brand whose first scan is over. */
export async function scannedBrand(caller: Caller, given: Json): Promise<Json> {
  const brand = await caller.post(`${base}/brands`, { name: 'Ovens', ...given });
  await eventually(async () => {
    const { data } = await caller.get(`${base}/scans?brand_id=${brand.id}`);
    return data[0].state !== 'running';
  }, 'the first scan');
  return brand;
}

/** A search or scan, once it has ended. */
export async function ended(caller: Caller, kind: 'searches' | 'scans', id: string): Promise<Json> {
  let run: Json = {};
  await eventually(async () => {
    run = await caller.get(`${base}/${kind}/${id}`);
    return run.finished_at !== null;
  }, `${kind} ${id} to end`);
  return run;
}

/** The scan behind a search, once it has ended. */
export async function scanBehind(caller: Caller, search_id: string): Promise<Json> {
  const { scan_id } = await caller.get(`${base}/searches/${search_id}`);
  return ended(caller, 'scans', scan_id);
}
