import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import sql from 'sql-template-tag';
import type { Test } from 'tap';
import { createVault } from '../../src/core/encryption/vault.ts';
import { openDatabase, run } from '../../src/core/postgres/database.ts';
import { type Store, type Tx, transaction } from '../../src/core/postgres/transaction.ts';
import { newId } from '../../src/core/values/id.ts';
import { writeEvents } from '../../src/products.ts';
import { insertVisits } from '../../src/recruitment/discovery/scan_visits.ts';
import { createProspects } from '../../src/recruitment/prospects/create.ts';
import { startNameServer } from '../core/net/name_server.ts';
import type { Bench, Sample } from './harness.ts';
import { makeMerchant } from './merchant.ts';
import { cpuOf, postmasterOf, startNode, startPostgres, usedBetween } from './processes.ts';

const default_pages = 500;
/** The hosts that a worker visits at a time: five times its concurrency of 10. */
const hosts_at_once = 50;
/** Between two requests to a host, as the specification says. */
const interval_s = 1;

/** Scans of a farm of websites on loopback, as fast as politeness allows. */
export const scans: Bench = {
  name: 'scans',
  doc: `Scans of a farm on loopback, ${default_pages} pages (--size), ${hosts_at_once} hosts at a time and one request a second and host, beside what that politeness allows.`,
  defaults: { rounds: 3, seconds: 5 },
  async setup(stack, _progress, size = default_pages) {
    const url = await startPostgres(stack);
    const key = randomBytes(32);
    const farm = await startFarm(stack);
    const environment = {
      ...{ DATABASE_URL: url, RAIL_ENCRYPTION_KEY: key.toString('base64'), BASE_URL: 'http://127.0.0.1' },
      ...{ RAIL_WEBHOOK_ALLOW_PRIVATE: '1', RAIL_WEBHOOK_NAME_SERVERS: farm.name_servers.join(',') },
    };
    const api = await startNode(stack, '../../src/rail.js', ['api'], environment, { path: '/readyz' });
    const worker = await startNode(stack, '../../src/rail.js', ['worker'], environment, { line: 'worker ready' });
    const database = openDatabase(url, { size: 2, name: 'rail bench' });
    stack.defer(() => database.end());
    const { organization_id, post } = await makeMerchant(database, api);
    const brand = { name: 'Ovens', website_url: farm.at('shop.com', 0), keywords: ['sourdough'] };
    const { id: brand_id } = await post('/recruitment/v1/brands', brand);
    const store: Store = { database, writeEvents };
    const within = <T>(work: (tx: Tx) => Promise<T>) => transaction(store, { organization_id, request_id: null }, work);
    const postgres = await postmasterOf(url);
    let round = 0;

    /** @param urls the pages, in the order in which they are visited */
    async function scan(urls: string[], least_s: number): Promise<Sample> {
      const before = await cpuOf({ worker: worker.pid, postgres });
      const began = performance.now();
      const id = await within((tx) => startScan(tx, createVault([key]), brand_id, urls));
      const seconds = await secondsOf(() => isDone(id), began);
      const used = usedBetween(before, await cpuOf({ worker: worker.pid, postgres }));
      const ms = (name: string) => ((used[name] ?? 0) * 1_000) / urls.length;
      return {
        ...{ pages_s: urls.length / seconds, polite_s: urls.length / least_s, beyond: seconds / least_s },
        ...{ cpu_ms: ms('worker') + ms('postgres'), worker_ms: ms('worker') },
      };
    }

    async function isDone(id: string): Promise<boolean> {
      const [row] = await run<{ left: number; pages: number }>(
        database,
        sql`select count(*) filter (where v.done_at is null)::integer as left, count(*) filter (where v.outcome = 'page')::integer as pages
          from recruitment.visit v where v.organization_id = ${organization_id} and v.run_id = ${id}`,
      );
      if (row?.left !== 0) return false;
      if (row.pages === 0) throw new Error('No page was read.');
      return true;
    }

    /** Returns hosts that no worker knows: the first request to each is for its robots.txt. */
    const farmOf = (hosts: number, pages: number): string[] => {
      round++;
      return Array.from({ length: hosts * pages }, (_, nth) =>
        farm.at(`blog${nth % hosts}-${round}.com`, Math.floor(nth / hosts)),
      );
    };
    const byHost = (urls: string[]): string[] => urls.toSorted((one, other) => (one < other ? -1 : 1));
    const pages_each = Math.ceil(size / hosts_at_once);
    return {
      postgres_url: url,
      figures: {
        pages_s: { unit: '/s', better: 'higher', doc: 'pages visited in a second' },
        polite_s: { unit: '/s', better: 'higher', doc: 'pages that politeness allows in a second' },
        beyond: {
          unit: '×',
          better: 'lower',
          at_most: 1.2,
          doc: 'the time that it took, to the time that politeness takes',
        },
        cpu_ms: { unit: 'ms', better: 'lower', doc: 'CPU time of a page, of the worker and Postgres' },
        worker_ms: { unit: 'ms', better: 'lower', doc: 'CPU time of a page, of the worker' },
      },
      notes: [
        `Each page has ${page_words} words and ${page_links} links. Each host is asked for its robots.txt first.`,
        `A page of a new host takes ${interval_s} s: its robots.txt, and the page a second later. Politeness takes the pages of the host with most pages, in seconds; or ${interval_s} s for each ${hosts_at_once} new hosts.`,
      ],
      sides: [
        {
          ...{ name: 'sites', doc: 'one page of each of as many hosts as there are pages' },
          run: () => scan(farmOf(size, 1), Math.ceil(size / hosts_at_once) * interval_s),
        },
        {
          ...{ name: 'hosts', doc: `the pages of ${hosts_at_once} hosts, in turn` },
          run: () => scan(farmOf(hosts_at_once, pages_each), pages_each * interval_s),
        },
        {
          ...{ name: 'host_by_host', doc: 'the same, in the order of the hosts' },
          run: () => scan(byHost(farmOf(hosts_at_once, pages_each)), pages_each * interval_s),
        },
      ],
    };
  },
};

/** As a scan that has found these pages. */
async function startScan(
  tx: Tx,
  vault: ReturnType<typeof createVault>,
  brand_id: string,
  urls: string[],
): Promise<string> {
  const id = newId('fsc');
  const created = await createProspects(
    tx,
    vault,
    urls.map((url, nth) => ({ brand_id, channel: 'instagram' as const, key: `${id}_${nth}`, url })),
    { source: 'scan', source_run_id: id },
  );
  const { organization_id, now } = tx;
  await tx.all(sql`
    insert into recruitment.run (organization_id, id, brand_id, kind, trigger, state, steps, visits, visits_left, started_at)
    values (${organization_id}, ${id}, ${brand_id}, 'scan', 'manual', 'running', '[]', 0, 0, ${now}::timestamptz)`);
  const found = urls.map((url, nth) => ({ url, prospect_id: created[nth]?.id as string }));
  await insertVisits(tx, id, found);
  return id;
}

async function secondsOf(isDone: () => Promise<boolean>, began: number): Promise<number> {
  while (!(await isDone())) await sleep(50);
  return (performance.now() - began) / 1_000;
}

const page_words = 600;
const page_links = 60;

const words = Array.from(
  { length: page_words },
  (_, nth) => ['sourdough', 'bread', 'oven', 'flour', 'recipe'][nth % 5],
).join(' ');
const links = Array.from(
  { length: page_links },
  (_, nth) => `<li><a href="https://shop${nth}.example.com/p?aid=${nth}">Shop ${nth}</a></li>`,
).join('');
const page = `<!doctype html><html lang="en"><head><title>A blog</title><meta name="description" content="All about bread">
</head><body><h1>Bread</h1><p>${words}</p><ul>${links}</ul></body></html>`;

/** One server of every host, and the name server that leads to it. */
async function startFarm(stack: AsyncDisposableStack) {
  const server = createServer((request, response) => {
    if (request.url === '/robots.txt') response.writeHead(404).end();
    else response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stack.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const ended = { teardown: (end: () => void) => stack.defer(end) } as unknown as Test;
  const { nameServers } = await startNameServer(ended, (_, type) => (type === 'A' ? ['127.0.0.1'] : []));
  return { name_servers: nameServers, at: (host: string, nth: number) => `http://${host}:${port}/${nth}` };
}
