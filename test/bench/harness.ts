import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { availableParallelism, cpus, loadavg, release, tmpdir, totalmem, type } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { Pool } from 'undici';
import { openEmbeddedPostgres } from '../../src/core/embedded_postgres.ts';
import { migrate } from '../../src/core/migrate.ts';

/** A bench as plain data. `npm run bench -- NAME` runs it; run.ts lists them. */
export interface Bench {
  name: string;
  /** One sentence on what it measures. */
  doc: string;
  /** Starts what is measured. What it starts it hands to `stack`, which ends it in reverse order, also after a failure half way. */
  setup(stack: AsyncDisposableStack, progress: Progress): Promise<Rig>;
}

export interface Rig {
  /** Measured in turn, in this order, each round: A B C, A B C, … */
  sides: Side[];
  /** Of every figure that a side gives: its unit, which way is good, and what it means. */
  figures: Record<string, Figure>;
  /** What a reader must know to judge the figures, a sentence each. */
  notes: string[];
  /** Where the server's version and settings are read. */
  postgres_url?: string;
}

export interface Side {
  name: string;
  doc: string;
  /** The side that its figures are divided by, where both have them. */
  baseline?: string;
  run(seconds: number): Promise<Sample>;
}

export interface Figure {
  unit: string;
  better: 'higher' | 'lower';
  doc: string;
}

/** What a side measured in one round, by the figure's name. */
export type Sample = Record<string, number>;
export type Progress = (line: string) => void;

export interface Spread {
  median: number;
  min: number;
  max: number;
  /** Median absolute deviation from the median. */
  mad: number;
}

export interface Report {
  bench: string;
  doc: string;
  started_at: string;
  rounds: number;
  seconds: number;
  machine: Machine;
  notes: string[];
  sides: { name: string; doc: string }[];
  figures: ReportedFigure[];
}

export interface ReportedFigure extends Spread, Figure {
  side: string;
  name: string;
  rounds: number[];
  /** Of the ratios of the same rounds to the baseline. */
  ratio?: Spread & { baseline: string };
}

export interface Machine {
  os: string;
  cpu: string;
  cores: number;
  memory_gib: number;
  node: string;
  /** Of the minute before the first round: what else the machine was doing. */
  load_average: number;
  postgres?: string;
  synchronous_commit?: string;
  fsync?: string;
}

const usage = (benches: Bench[]): string => `Usage: npm run bench -- NAME [--rounds N] [--seconds N] [--json]

  --rounds N   rounds that count, after one that does not (5)
  --seconds N  how long a side is measured in a round (5)
  --json       one JSON object on standard output, and nothing else there
  --help       this

Benches:
${benches.map(({ name, doc }) => `  ${name.padEnd(12)} ${doc}`).join('\n')}
`;

/** Where the command writes, so that a test can read it. */
export interface Output {
  out: (text: string) => void;
  err: (text: string) => void;
}

/**
 * The command line of the benches.
 * @param stopping aborted by Ctrl-C: what runs is taken down and nothing is reported
 * @returns the exit code: 2 where the arguments are not right, 130 when it was stopped
 */
export async function command(
  args: string[],
  benches: Bench[],
  { out, err }: Output,
  stopping?: AbortSignal,
): Promise<number> {
  let asked: ReturnType<typeof readArguments>;
  try {
    asked = readArguments(args);
  } catch (error) {
    err(`${(error as Error).message}\n`);
    return 2;
  }
  if (asked.help || asked.name === undefined) {
    out(usage(benches));
    return 0;
  }
  const bench = benches.find(({ name }) => name === asked.name);
  if (!bench) {
    err(`There is no bench '${asked.name}'. There are: ${benches.map(({ name }) => name).join(', ')}.\n`);
    return 2;
  }
  const report = await measure(bench, { ...asked, stopping, progress: (line) => err(`${line}\n`) });
  if (!report) return 130;
  out(asked.json ? `${JSON.stringify(report)}\n` : table(report));
  return 0;
}

function readArguments(args: string[]) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '5' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const rounds = Number(values.rounds);
  const seconds = Number(values.seconds);
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds must be a whole number from 1.');
  if (!(seconds > 0 && seconds < 86_400)) throw new Error('--seconds must be a number above 0.');
  if (positionals.length > 1) throw new Error('Name one bench at a time.');
  return { name: positionals[0], rounds, seconds, json: values.json, help: values.help };
}

interface Measuring {
  rounds: number;
  seconds: number;
  progress: Progress;
  stopping?: AbortSignal | undefined;
}

/**
 * Sets a bench up, warms every side up by a round that does not count, measures the rounds, and takes everything down again.
 * @returns undefined when it was stopped
 */
export async function measure(
  bench: Bench,
  { rounds, seconds, progress, stopping }: Measuring,
): Promise<Report | undefined> {
  await using stack = new AsyncDisposableStack();
  progress(`${bench.name}: setting up`);
  const rig = await bench.setup(stack, progress);
  const machine = await machineOf(rig.postgres_url);
  const samples = new Map(rig.sides.map(({ name }) => [name, [] as Sample[]]));
  const started_at = new Date().toISOString();
  const stopped = stopping ? [aborted(stopping)] : [];
  for (let round = 0; round <= rounds; round++) {
    for (const { name, run } of rig.sides) {
      const sample = await Promise.race([...stopped, run(seconds)]);
      if (!sample) return undefined;
      progress(`${round === 0 ? 'warm-up' : `round ${round}/${rounds}`}  ${name}  ${brief(sample)}`);
      if (round > 0) samples.get(name)?.push(sample);
    }
  }
  return {
    bench: bench.name,
    doc: bench.doc,
    started_at,
    rounds,
    seconds,
    machine,
    notes: rig.notes,
    sides: rig.sides.map(({ name, doc }) => ({ name, doc })),
    figures: rig.sides.flatMap((side) => figuresOf(side, rig.figures, samples)),
  };
}

const aborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });

/** The figures of one side over all rounds; the ratios are taken round by round, so that what slowed both cancels out. */
function figuresOf(
  { name: side, baseline }: Side,
  figures: Record<string, Figure>,
  samples: Map<string, Sample[]>,
): ReportedFigure[] {
  const own = samples.get(side) as Sample[];
  const theirs = baseline === undefined ? undefined : samples.get(baseline);
  return Object.entries(figures).flatMap(([name, figure]) => {
    const rounds = own.map((sample) => sample[name]).filter((value) => value !== undefined);
    if (rounds.length === 0) return [];
    const ratios = own.map((sample, round) => (sample[name] as number) / (theirs?.[round]?.[name] ?? Number.NaN));
    const ratio =
      baseline !== undefined && ratios.every(Number.isFinite) ? { ratio: { ...spread(ratios), baseline } } : {};
    return [{ side, name, ...figure, ...spread(rounds), rounds, ...ratio }];
  });
}

/** @param values at least one */
export function spread(values: number[]): Spread {
  const middle = median(values);
  return {
    median: middle,
    min: Math.min(...values),
    max: Math.max(...values),
    mad: median(values.map((value) => Math.abs(value - middle))),
  };
}

/** The middle value, or the mean of the middle two. NaN of nothing. */
export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1
    ? (sorted[Math.floor(half)] as number)
    : ((sorted[half - 1] as number) + (sorted[half] as number)) / 2;
}

/** The least value that at least `percent` of all values do not exceed (nearest rank). NaN of nothing. */
export function percentile(values: ArrayLike<number>, percent: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(1, Math.ceil((percent / 100) * sorted.length)) - 1] ?? Number.NaN;
}

const brief = (sample: Sample): string =>
  Object.entries(sample)
    .map(([name, value]) => `${name} ${readable(value)}`)
    .join('  ');

/** Three digits that count, whole numbers from 100. */
const readable = (value: number): string =>
  Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(3)));

/** The report for humans. */
export function table({ bench, doc, rounds, seconds, machine, notes, sides, figures }: Report): string {
  const rows = figures.map(({ side, name, unit, better, median: middle, min, max, ratio }) => [
    side,
    name,
    readable(middle),
    `${readable(min)} – ${readable(max)}`,
    unit,
    better,
    ratio ? `${ratio.median.toFixed(2)} × ${ratio.baseline} (${ratio.min.toFixed(2)} – ${ratio.max.toFixed(2)})` : '',
  ]);
  const head = ['side', 'figure', 'median', 'min – max', 'unit', 'better', 'ratio'];
  const meanings = [...new Map(figures.map((figure) => [figure.name, figure.doc]))];
  return [
    `${bench}: ${doc}`,
    machineLine(machine),
    `${rounds} rounds of ${seconds} s a side, in turn, after one to warm up.`,
    '',
    ...aligned([head, ...rows], [2, 3]),
    '',
    ...aligned([...sides.map(({ name, doc: meaning }) => [name, meaning]), ...meanings]),
    ...(notes.length > 0 ? ['', ...notes] : []),
    '',
  ].join('\n');
}

const machineLine = ({ os, cpu, cores, memory_gib, node, load_average, ...postgres }: Machine): string =>
  [
    `${cpu}, ${cores} cores, ${memory_gib} GiB, ${os}, Node ${node}`,
    ...(postgres.postgres
      ? [`Postgres ${postgres.postgres}, synchronous_commit ${postgres.synchronous_commit}, fsync ${postgres.fsync}`]
      : []),
    `load average before ${load_average}`,
  ].join('; ');

function aligned(rows: string[][], right: number[] = []): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  return rows.map((row) =>
    row
      .map((cell, column) =>
        right.includes(column) ? cell.padStart(widths[column] as number) : cell.padEnd(widths[column] as number),
      )
      .join('  ')
      .trimEnd(),
  );
}

async function machineOf(postgres_url: string | undefined): Promise<Machine> {
  const settings = postgres_url
    ? await onServer(postgres_url, async (client) => {
        const { rows } = await client.query<Pick<Machine, 'postgres' | 'synchronous_commit' | 'fsync'>>(
          `select current_setting('server_version') as postgres, current_setting('synchronous_commit') as synchronous_commit,
            current_setting('fsync') as fsync`,
        );
        return rows[0];
      })
    : {};
  return {
    os: `${type()} ${release()}`,
    cpu: cpus()[0]?.model.trim() || 'unknown CPU',
    cores: availableParallelism(),
    memory_gib: Math.round(totalmem() / 2 ** 30),
    node: process.versions.node,
    load_average: Number((loadavg()[0] as number).toFixed(2)),
    ...settings,
  };
}

async function onServer<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** A migrated Postgres of the bench's own, with the settings that the service's embedded one has, and those given besides. */
export async function startPostgres(
  stack: AsyncDisposableStack,
  settings: Record<string, string> = {},
): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'rail-bench-'));
  stack.defer(() => rm(dataDir, { recursive: true, force: true }));
  const postgres = await openEmbeddedPostgres({ dataDir, mode: 'own', settings });
  stack.defer(() => postgres.stop());
  await migrate(postgres.url);
  return postgres.url;
}

export interface Running {
  pid: number;
  /** Where it listens, if it does. */
  url: string;
}

/**
 * Starts `node <file> <args>` as a process of its own, with its log in a file, and waits until it is ready.
 * @param file a path from this folder  @param ready a path that answers 200, or a line that the log must hold
 * @throws Error with the end of its log when it ends before it is ready
 */
export async function startNode(
  stack: AsyncDisposableStack,
  file: string,
  args: string[],
  environment: Record<string, string>,
  ready: { path: string } | { line: string },
): Promise<Running> {
  const folder = await mkdtemp(join(tmpdir(), 'rail-bench-log-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const log = join(folder, 'log');
  const sink = await open(log, 'w');
  const port = await freePort();
  const child = spawn(process.execPath, [...nodeOptions(), join(import.meta.dirname, file), ...args], {
    env: { ...process.env, PORT: String(port), HOST: '127.0.0.1', ...environment },
    stdio: ['ignore', 'ignore', sink.fd],
  });
  stack.defer(() => stopProcess(child));
  await sink.close();
  const url = `http://127.0.0.1:${port}`;
  const isReady = 'path' in ready ? () => answers(`${url}${ready.path}`) : () => holds(log, ready.line);
  for (const end = Date.now() + 60_000; !(await isReady()); await sleep(20)) {
    if (child.exitCode === null && child.signalCode === null && Date.now() < end) continue;
    throw new Error(
      `${[file, ...args].join(' ')} did not become ready:\n${(await readFile(log, 'utf8')).slice(-2_000)}`,
    );
  }
  return { pid: child.pid as number, url };
}

/** `RAIL_BENCH_NODE_OPTIONS`: options for the processes that are measured and not for the one that measures, such as --cpu-prof. */
const nodeOptions = (): string[] => (process.env.RAIL_BENCH_NODE_OPTIONS ?? '').split(' ').filter(Boolean);

const answers = (url: string): Promise<boolean> =>
  fetch(url).then(
    async (response) => {
      await response.body?.cancel();
      return response.ok;
    },
    () => false,
  );

const holds = async (file: string, line: string): Promise<boolean> => (await readFile(file, 'utf8')).includes(line);

async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  const killer = setTimeout(() => child.kill('SIGKILL'), 20_000);
  await gone;
  clearTimeout(killer);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

export interface Asked {
  method: 'GET' | 'POST';
  path: string;
  headers?: Record<string, string>;
  body?: string;
}

/** What came of a load: the latency of each request, from its sending to the end of its response. */
export interface Load {
  latencies_ms: number[];
  seconds: number;
}

/**
 * Closed loop: each of `connections` sends its next request when the one before is answered, for so many seconds.
 * @throws Error when a response is not a success
 */
export async function closedLoop(
  url: string,
  { connections, seconds, next }: { connections: number; seconds: number; next: () => Asked },
): Promise<Load> {
  await using stack = new AsyncDisposableStack();
  const client = stack.adopt(new Pool(url, { connections, pipelining: 1 }), (pool) => pool.destroy());
  const latencies_ms: number[] = [];
  const started = performance.now();
  const end = started + seconds * 1_000;
  const loop = async () => {
    while (performance.now() < end) latencies_ms.push(await timed(client, next()));
  };
  await Promise.all(Array.from({ length: connections }, loop));
  return { latencies_ms, seconds: (performance.now() - started) / 1_000 };
}

/**
 * Open loop: a request every 1/rate s, whether or not those before are answered. A latency begins when its request was due, so
 * that a stall of the service counts for every request that it kept waiting.
 */
export async function openLoop(
  url: string,
  { connections, seconds, rate, next }: { connections: number; seconds: number; rate: number; next: () => Asked },
): Promise<Load> {
  await using stack = new AsyncDisposableStack();
  const client = stack.adopt(new Pool(url, { connections, pipelining: 1 }), (pool) => pool.destroy());
  const sent: Promise<number>[] = [];
  const started = performance.now();
  for (let nth = 0; nth < seconds * rate; nth++) {
    const due = started + (nth * 1_000) / rate;
    const wait = due - performance.now();
    if (wait > 0) await sleep(wait);
    sent.push(timed(client, next(), due));
  }
  return { latencies_ms: await Promise.all(sent), seconds: (performance.now() - started) / 1_000 };
}

async function timed(client: Pool, asked: Asked, from = performance.now()): Promise<number> {
  const { statusCode, body } = await client.request(asked);
  const text = await body.text();
  if (statusCode >= 300) throw new Error(`${asked.method} ${asked.path} answered ${statusCode}: ${text}`);
  return performance.now() - from;
}

/** The system's clock in ms since 1970, finer than `Date.now()`: for times that are compared with those of another process. */
export function preciseClock(): () => number {
  const before = Date.now();
  let epoch = before;
  while (epoch === before) epoch = Date.now();
  const at = performance.now();
  return () => epoch + (performance.now() - at);
}

export interface Used {
  cpu_us: number;
  memory_bytes: number;
}

const ticks_a_second = 100;

/** CPU time and resident memory of a process and its children, ended ones included. Undefined where there is no /proc. */
export async function usedBy(pid: number): Promise<Used | undefined> {
  const processes = await Promise.all(
    (await readdir('/proc').catch(() => []))
      .filter((name) => /^\d+$/.test(name))
      .map((name) => readFile(`/proc/${name}/stat`, 'utf8').then(parseStat, () => undefined)),
  );
  const family = processes.filter((one) => one !== undefined && (one.pid === pid || one.parent === pid));
  const own = family.find((one) => one?.pid === pid);
  if (!own) return undefined;
  return {
    cpu_us: family.reduce((sum, one) => sum + (one?.cpu_us ?? 0), own.ended_us),
    memory_bytes: family.reduce((sum, one) => sum + (one?.memory_bytes ?? 0), 0),
  };
}

function parseStat(text: string) {
  const pid = Number.parseInt(text, 10);
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const us = (...indexes: number[]) =>
    indexes.reduce((sum, index) => sum + (fields[index] as number), 0) * (1_000_000 / ticks_a_second);
  return {
    pid,
    parent: fields[1] as number,
    cpu_us: us(11, 12),
    ended_us: us(13, 14),
    memory_bytes: (fields[21] as number) * 4_096,
  };
}

/** The pid of the Postgres server behind a url on this machine: the parent of the process that serves a connection. */
export async function postmasterOf(url: string): Promise<number | undefined> {
  return onServer(url, async (client) => {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    return readFile(`/proc/${rows[0]?.pid}/stat`, 'utf8').then(
      (text) => parseStat(text).parent,
      () => undefined,
    );
  });
}
