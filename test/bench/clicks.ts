import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import sql from 'sql-template-tag';
import { type Database, openDatabase, run } from '../../src/core/postgres/database.ts';
import type { Bench, Sample, Side } from './harness.ts';
import type { Asked } from './load.ts';
import { type Merchant, makeMerchant } from './merchant.ts';
import { postmasterOf, type Running, startNode, startPostgres } from './processes.ts';
import { connections, saturate } from './saturate.ts';
import { untilNone } from './slice.ts';

const pool_size = 20;
const partners = 200;
const links = 50;
/** Each may be used 2,000 times in a second. */
const publishable_keys = 10;
/** After the end of a load what is not attributed counts no more. */
const attributed_within_ms = 2_000;
const user_agent = 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0';

/** The requests of each kind, one after the other. */
interface Clicks {
  click: () => Asked;
  redirect: () => Asked;
  track: () => Asked;
}

type Load = (next: () => Asked) => Side['run'];

/** Clicks in, each of a new visitor, and what they are credited to; beside the least that a Fastify route with an insert costs. */
export const benchOfClicks = (
  { name, doc }: Pick<Bench, 'name' | 'doc'>,
  sidesOf: (load: Load, made: Clicks) => Side[],
): Bench => ({
  ...{ name, doc },
  async setup(stack, progress) {
    const url = await startPostgres(stack);
    const environment = {
      DATABASE_URL: url,
      DATABASE_POOL_SIZE: String(pool_size),
      RAIL_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
      LOG_LEVEL: 'info',
    };
    progress(`${name}: starting the bare route, the API and the worker`);
    const bare = await startNode(stack, 'bare.ts', [], environment, { path: '/readyz' });
    const api = await startNode(stack, '../../src/rail.js', ['api'], environment, { path: '/readyz' });
    const worker = await startNode(stack, '../../src/rail.js', ['worker'], environment, { line: 'worker ready' });
    const database = openDatabase(url, { size: 4, name: 'rail bench' });
    stack.defer(() => database.end());
    let nth = 0;
    const insert = (): Asked => {
      const body = { external_charge_id: `ch_${++nth}`, amount_minor: 9_900, currency: 'USD' };
      return {
        method: 'POST',
        path: '/bare',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      };
    };
    progress(`${name}: making ${partners} partners and ${links} links`);
    const made = await makeClicks(await makeMerchant(database, api));
    const place = { database, worker, postgres: await postmasterOf(url) };
    const load = (server: Running, next: () => Asked) => (seconds: number) => saturated(place, server, next, seconds);
    return {
      postgres_url: url,
      figures,
      notes,
      sides: [
        {
          name: 'bare',
          doc: `a Fastify route with one insert … returning, ${connections} connections, each sends when it is answered`,
          run: load(bare, insert),
        },
        ...sidesOf((next) => load(api, next), made),
      ] satisfies Side[],
    };
  },
});

export const clicks = benchOfClicks(
  {
    name: 'clicks',
    doc: 'POST /v1/clicks and GET /r/{slug} with their attribution, beside a bare Fastify route with one insert.',
  },
  (load, { click, redirect }) => [
    {
      name: 'clicks',
      doc: 'POST /v1/clicks, same load, in a program without an endpoint',
      baseline: 'bare',
      run: load(click),
    },
    {
      name: 'redirects',
      doc: 'GET /r/{slug}, same load: redirected once the click is committed',
      baseline: 'bare',
      run: load(redirect),
    },
  ],
);

const figures: Awaited<ReturnType<Bench['setup']>>['figures'] = {
  requests: {
    unit: '/s',
    better: 'higher',
    doc: `requests answered with success in a second; of clicks those that are attributed ${attributed_within_ms / 1_000} s after the end of the load`,
  },
  p50: { unit: 'ms', better: 'lower', doc: 'a request: from its sending to the end of its response' },
  p99: { unit: 'ms', better: 'lower', doc: 'the same' },
  server_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a request, of the process that answers it' },
  postgres_cpu: {
    unit: 'µs',
    better: 'lower',
    doc: 'CPU time a request, of Postgres, until all clicks are attributed',
  },
  worker_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a request, of the worker, until then' },
};

const notes = [
  'The client, the process that answers, the worker and Postgres share the cores of one machine.',
  'Each click is of a visitor of its own and makes a referral, whose event is recorded. Between two loads all clicks are attributed.',
  'Tables are analyzed before each load, as Postgres does by itself within a minute. The service logs each request, the bare route does not.',
];

interface Place {
  database: Database;
  worker: Running;
  postgres: number | undefined;
}

const waiting = sql`exists (select from program.click where attributed_at is null)`;

async function saturated(
  { database, ...place }: Place,
  server: Running,
  next: () => Asked,
  seconds: number,
): Promise<Sample> {
  await database.query('vacuum (analyze) program.click, program.referral, program.partner, program.link');
  const settle = async () => {
    await sleep(attributed_within_ms);
    const [late] = await run<{ clicks: number }>(
      database,
      sql`select count(*) as clicks from program.click where attributed_at is null`,
    );
    await untilNone(database, 'The clicks of a load were not attributed', waiting);
    return late?.clicks ?? 0;
  };
  return saturate({ ...place, server, next, settle }, seconds);
}

/** A program with partners, links and publishable keys. */
async function makeClicks({ headers, post }: Merchant): Promise<Clicks> {
  const website = 'https://acme.example.com';
  const { id: program_id } = await post('/v1/programs', { name: 'Acme', website_url: website, currency: 'USD' });
  const made: Record<string, string>[] = [];
  for (let nth = 0; nth < partners; nth++) {
    const email = `partner${nth}@example.com`;
    made.push((await post('/v1/partners', { program_id, email, handle: `partner${nth}` })) as Record<string, string>);
  }
  const slugs: string[] = [];
  for (const { id: partner_id } of made.slice(0, links)) {
    const link = await post('/v1/links', { program_id, partner_id, destination_url: `${website}/pricing` });
    slugs.push((link as unknown as { short_slug: string }).short_slug);
  }
  const keys: string[] = [];
  for (let nth = 0; nth < publishable_keys; nth++) {
    const key = await post('/v1/publishable_keys', { program_id, allowed_origins: [website] });
    keys.push((key as unknown as { key: string }).key);
  }
  let nth = 0;
  return {
    track: () => {
      nth++;
      const url = `${website}/pricing?utm_source=newsletter&n=${nth}`;
      const body = { key: keys[nth % keys.length], param: 'ref', value: `partner${nth % partners}`, url };
      const headers = { origin: website, 'user-agent': user_agent, 'content-type': 'text/plain;charset=UTF-8' };
      return { method: 'POST', path: '/v1/track/click', headers, body: JSON.stringify(body) };
    },
    click: () => {
      nth++;
      const body = {
        ...{
          program_id,
          value: `partner${nth % partners}`,
          visitor_token: `visitor-${nth}-${process.pid}`,
          user_agent,
        },
        ...{ landing_url: `${website}/pricing?utm_source=newsletter&n=${nth}`, country: 'DE' },
        ip: `198.18.${(nth >> 8) % 256}.${nth % 256}`,
      };
      return { method: 'POST', path: '/v1/clicks', headers, body: JSON.stringify(body) };
    },
    redirect: () => {
      nth++;
      const path = `/r/${slugs[nth % slugs.length]}?utm_source=newsletter`;
      return { method: 'GET', path, headers: { 'user-agent': user_agent } };
    },
  };
}
