import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { stablePort } from '../ports.ts';
import type { Bench, Sample, Side } from './harness.ts';
import { postmasterOf, type Running, startNode, startPostgres, type Used, usedBy } from './processes.ts';

/** Measures idle processes, each on a Postgres of its own. */
export const idle: Bench = {
  name: 'idle',
  doc: 'Memory and CPU of an API and a worker with nothing to do, beside a bare Fastify route.',
  defaults: { rounds: 1, seconds: 60 },
  async setup(stack) {
    const start = async (
      file: string,
      args: string[],
      ready: Parameters<typeof startNode>[4],
      own: Record<string, string> = {},
    ): Promise<Resting> => {
      const url = await startPostgres(stack);
      const environment = { DATABASE_URL: url, DATABASE_POOL_SIZE: '20', ...settings, ...own };
      if (args.length > 0) await startOnce(file, args, environment, ready);
      return { process: await startNode(stack, file, args, environment, ready), postmaster: await postmasterOf(url) };
    };
    const metrics_port = String(await stablePort());
    const [bare, api, worker, scraped] = await Promise.all([
      start('bare.ts', [], { path: '/readyz' }),
      start('../../src/rail.js', ['api'], { path: '/readyz' }),
      start('../../src/rail.js', ['worker'], { line: 'worker ready' }),
      start(
        '../../src/rail.js',
        ['worker'],
        { line: 'worker ready' },
        { METRICS_PORT: metrics_port, HOST: '127.0.0.1' },
      ),
    ]);
    const resting = { bare, api, worker, scraped };
    const scrapes = setInterval(
      () => fetch(`http://127.0.0.1:${metrics_port}/metrics`).then((answer) => answer.text()),
      scraped_each_ms,
    );
    stack.defer(() => clearInterval(scrapes));
    // All are measured at the same time, by the first side.
    let measured: Record<string, Sample> = {};
    const side = (name: keyof typeof resting, doc: string): Side => ({
      ...{ name, doc },
      ...(name === 'bare' ? {} : { baseline: 'bare' }),
      async run(seconds) {
        if (!(name in measured)) measured = await measureAll(resting, seconds);
        const { [name]: sample, ...left } = measured;
        measured = left;
        return sample as Sample;
      },
    });
    return {
      figures,
      notes: [
        'All rest for the round that does not count before. METRICS_PORT is set for `scraped` alone, which reads the metrics of the database; what API and worker load was compiled by an earlier start, which ran for more than a minute.',
      ],
      sides: [
        side('bare', 'a Fastify route with a pool of connections'),
        side('api', '`rail api`'),
        side('worker', '`rail worker`, with its schedules of each minute'),
        side('scraped', 'the same, whose /metrics is read each 15 seconds'),
      ],
    };
  },
};

type Started = Parameters<typeof startNode> extends [unknown, ...infer Rest] ? Rest : never;

/**
 * Runs as an installed version did before, for longer than a minute, so that its schedules load their tasks: its compiled code is kept for the starts
 * that follow, which need no compiler of TypeScript.
 */
async function startOnce(...started: Started): Promise<void> {
  await using stack = new AsyncDisposableStack();
  await startNode(stack, ...started);
  await sleep(70_000);
}

/** As Prometheus does by many of its examples. */
const scraped_each_ms = 15_000;

const settings = { RAIL_ENCRYPTION_KEY: randomBytes(32).toString('base64'), LOG_LEVEL: 'info' };

const figures: Awaited<ReturnType<Bench['setup']>>['figures'] = {
  memory: { unit: 'MB', better: 'lower', doc: 'resident memory of the process at the end' },
  cpu: { unit: 'ms/s', better: 'lower', doc: 'CPU time of the process and its Postgres a second', at_most: 5 },
  own_cpu: { unit: 'ms/s', better: 'lower', doc: 'that of the process' },
};

interface Resting {
  process: Running;
  postmaster: number | undefined;
}

async function measureAll(resting: Record<string, Resting>, seconds: number): Promise<Record<string, Sample>> {
  const before = await useOf(resting);
  await sleep(seconds * 1_000);
  const after = await useOf(resting);
  return Object.fromEntries(
    Object.entries(after).map(([name, { own, postgres }]) => {
      const own_cpu = (own.cpu_us - (before[name]?.own.cpu_us ?? 0)) / 1_000 / seconds;
      const of_postgres = (postgres.cpu_us - (before[name]?.postgres.cpu_us ?? 0)) / 1_000 / seconds;
      return [name, { memory: own.memory_bytes / 2 ** 20, cpu: own_cpu + of_postgres, own_cpu }];
    }),
  );
}

async function useOf(resting: Record<string, Resting>): Promise<Record<string, { own: Used; postgres: Used }>> {
  const used = Object.entries(resting).map(async ([name, { process, postmaster }]) => {
    const [own, postgres] = await Promise.all([process.pid, postmaster].map((pid) => pid && usedBy(pid)));
    if (!own || !postgres) throw new Error('There is no /proc to read CPU time and memory from.');
    return [name, { own, postgres }] as const;
  });
  return Object.fromEntries(await Promise.all(used));
}
