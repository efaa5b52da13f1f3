import { parseArgs } from 'node:util';
import { type Machine, machineOf } from './processes.ts';

/** A bench as plain data. `npm run bench -- NAME` runs it; run.ts lists them. */
export interface Bench {
  name: string;
  /** One sentence on what it measures. */
  doc: string;
  /** The defaults of the command line. */
  defaults?: { rounds: number; seconds: number };
  /** Starts what is measured. What it starts it hands to `stack`, which ends it in reverse order, also after a failure half way. */
  setup(stack: AsyncDisposableStack, progress: Progress, size?: number, data?: string): Promise<Rig>;
}

export interface Rig {
  /** Measured in turn, in this order, each round: A B C, A B C, … */
  sides: Side[];
  /** The figures of a side: the unit, the better direction, and the meaning. */
  figures: Record<string, Figure>;
  /** Notes for reading the figures, a sentence each. */
  notes: string[];
  /** The database whose version and settings are read. */
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
  /** The largest median that is claimed; the table says where it does not hold. */
  at_most?: number;
}

/** The figures of a side in one round, by name. */
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
  /** The ratios of the same rounds to the baseline. */
  ratio?: Spread & { baseline: string };
}

const usage = (
  benches: Bench[],
): string => `Usage: npm run bench -- NAME [--rounds N] [--seconds N] [--only SIDE] [--size N] [--data PATH] [--json]

  --rounds N   rounds that count, after one that does not (5, or as the bench has it)
  --seconds N  how long a side is measured in a round (5, or as the bench has it)
  --only SIDE  that side alone, those whose names begin with SIDE and a dot, and what they are divided by
  --size N     how much it fills in before, in what the bench counts (as the bench has it)
  --data PATH  the folder of the data that it measures, where that is not part of the project (../shared/data), or is kept (reports)
  --json       one JSON object on standard output, and nothing else there
  --help       this

Benches:
${benches.map(({ name, doc }) => `  ${name.padEnd(12)} ${doc}`).join('\n')}
`;

/** The output of the command, so that a test can read it. */
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
  const { rounds = 5, seconds = 5 } = { ...bench.defaults, ...asked.times };
  const report = await measure(bench, {
    rounds,
    seconds,
    only: asked.only,
    size: asked.size,
    data: asked.data,
    stopping,
    progress: (line) => err(`${line}\n`),
  });
  if (!report) return 130;
  out(asked.json ? `${JSON.stringify(report)}\n` : table(report));
  return 0;
}

function readArguments(args: string[]) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      only: { type: 'string' },
      size: { type: 'string' },
      data: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const { only, data, json, help } = values;
  const times: Partial<Record<'rounds' | 'seconds', number>> = {};
  if (values.rounds !== undefined) times.rounds = Number(values.rounds);
  if (values.seconds !== undefined) times.seconds = Number(values.seconds);
  const { rounds = 1, seconds = 1 } = times;
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds must be a whole number from 1.');
  if (!(seconds > 0 && seconds < 86_400)) throw new Error('--seconds must be a number above 0.');
  const size = values.size === undefined ? undefined : Number(values.size);
  if (size !== undefined && (!Number.isInteger(size) || size < 1))
    throw new Error('--size must be a whole number from 1.');
  if (positionals.length > 1) throw new Error('Name one bench at a time.');
  return { name: positionals[0], times, only, size, data, json, help };
}

interface Measuring {
  rounds: number;
  seconds: number;
  /** The sides that count: see --only. */
  only?: string | undefined;
  size?: number | undefined;
  data?: string | undefined;
  progress: Progress;
  stopping?: AbortSignal | undefined;
}

/**
 * Sets a bench up, warms every side up by a round that does not count, measures the rounds, and takes everything down again.
 * @returns undefined when it was stopped
 */
export async function measure(
  bench: Bench,
  { rounds, seconds, only, size, data, progress, stopping }: Measuring,
): Promise<Report | undefined> {
  await using stack = new AsyncDisposableStack();
  progress(`${bench.name}: setting up`);
  const rig = await bench.setup(stack, progress, size, data);
  const sides = only === undefined ? rig.sides : chosen(rig.sides, only);
  const machine = await machineOf(rig.postgres_url);
  const samples = new Map(sides.map(({ name }) => [name, [] as Sample[]]));
  const started_at = new Date().toISOString();
  const stopped = stopping ? [aborted(stopping)] : [];
  for (let round = 0; round <= rounds; round++) {
    for (const { name, run } of sides) {
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
    sides: sides.map(({ name, doc }) => ({ name, doc })),
    figures: sides.flatMap((side) => figuresOf(side, rig.figures, samples)),
  };
}

/** @throws Error when there is no such side */
function chosen(sides: Side[], only: string): Side[] {
  const wanted = sides.filter(({ name }) => name === only || name.startsWith(`${only}.`));
  if (wanted.length === 0)
    throw new Error(`There is no side '${only}'. There are: ${sides.map(({ name }) => name).join(', ')}.`);
  const baselines = new Set(wanted.map(({ baseline }) => baseline));
  return sides.filter((side) => wanted.includes(side) || baselines.has(side.name));
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
  const rows = figures.map(({ side, name, unit, better, median: middle, min, max, at_most, ratio }) => [
    side,
    name,
    readable(middle),
    `${readable(min)} – ${readable(max)}`,
    unit,
    better,
    at_most === undefined ? '' : `${middle <= at_most ? '' : 'NOT '}at most ${at_most}`,
    ratio ? `${ratio.median.toFixed(2)} × ${ratio.baseline} (${ratio.min.toFixed(2)} – ${ratio.max.toFixed(2)})` : '',
  ]);
  const head = ['side', 'figure', 'median', 'min – max', 'unit', 'better', 'claim', 'ratio'];
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
