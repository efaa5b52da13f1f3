import { readFileSync } from 'node:fs';
import { type Cpu, type FileResult, no_cpu } from './outcome.ts';

/**
 * `npm test -- --profile`: the CPU time of each file. A run has many more files than cores, so that CPU time, and not waiting, is what it
 * takes. A file's process counts its own time and that of the processes that it started; what Postgres computes for it is sampled from
 * the backends of its databases. Linux alone: elsewhere all of it is 0.
 */

const sample_ms = 250;
const ticks_per_s = 100;

/** The environment of a run that is profiled. */
export const profiling = { RAIL_TEST_PROFILE: '1' };
export const isProfiled = (): boolean => process.env.RAIL_TEST_PROFILE === '1';

/** Returns the line of a process when a file has ended: the CPU time since the process started. */
export const cpuLine = (): string => `# cpu ${cpuOf('self').all.toFixed(2)} ${cpuOf('self').started.toFixed(2)} s`;

/** @param before what it had said before */
export function cpuSaid(output: string, before = no_cpu): Cpu {
  const [, all, started] = /^# cpu (\S+) (\S+) s$/m.exec(output) ?? [];
  if (all === undefined) return no_cpu;
  return { all: Number(all) - before.all, started: Number(started) - before.started };
}

/** Begins the names of a test file's databases. */
export function databasePrefix(file: string): string {
  const name = file.replace(/^test\/|\.test\.ts$/g, '').replaceAll(/\W/g, '_');
  return `test_${name.slice(-40)}_`;
}

/**
 * Begins to watch the Postgres servers of a run.
 * @param postmasters their process ids
 * @returns the table of all files, and the sums
 */
export function startProfile(postmasters: number[]): (results: FileResult[]) => string {
  const backends = new Map<string, { database: string; seconds: number }>();
  const sample = () => {
    for (const pid of postmasters.flatMap(childrenOf)) {
      const database = databaseOf(pid);
      if (database) backends.set(pid, { database, seconds: cpuOf(pid).all });
    }
  };
  const timer = setInterval(sample, sample_ms);
  return (results) => {
    clearInterval(timer);
    const rows = results.map((result) => {
      const prefix = databasePrefix(result.file);
      const own = [...backends.values()].filter(({ database }) => database.startsWith(prefix));
      return { ...result, postgres: sum(own.map(({ seconds }) => seconds)) };
    });
    const files = sum(rows.map(({ cpu }) => cpu.all));
    const running = postmasters.flatMap((pid) => [String(pid), ...childrenOf(pid)]);
    const servers = sum(running.map((pid) => cpuOf(pid).all));
    const statements = sum(rows.map(({ postgres }) => postgres));
    const others = cpuOf('self').all - files;
    return `${tableOf(rows)}
${(files + servers + others).toFixed(0)} CPU s: ${files.toFixed(0)} of test files, ${statements.toFixed(0)} of Postgres for them, ${(servers - statements).toFixed(0)} of Postgres besides (databases made, short sessions), ${others.toFixed(0)} of types, lint and this runner`;
  };
}

function tableOf(rows: (FileResult & { postgres: number })[]): string {
  const lines = rows
    .toSorted((a, b) => b.cpu.all + b.postgres - a.cpu.all - a.postgres)
    .map(({ file, cpu, postgres, seconds, passed }) => {
      const figures = [cpu.all + postgres, cpu.all - cpu.started, cpu.started, postgres, seconds].map((figure) =>
        figure.toFixed(1).padStart(9),
      );
      return `${figures.join('')}${String(passed).padStart(9)}  ${file}\n`;
    });
  return `    CPU s     node  started postgres   wall s    tests\n${lines.join('')}`;
}

const sum = (figures: number[]): number => figures.reduce((all, one) => all + one, 0);

/** CPU seconds of a process, with those that it started and that have ended. */
function cpuOf(pid: string): Cpu {
  const text = readOrEmpty(`/proc/${pid}/stat`);
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const seconds = (from: number) => sum(fields.slice(from, 15).map(Number)) / ticks_per_s;
  return { all: seconds(11), started: seconds(13) };
}

const childrenOf = (pid: number): string[] =>
  readOrEmpty(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean);

/** The test file's database that a backend of Postgres serves, by its title. */
const databaseOf = (pid: string): string | undefined =>
  /^postgres: \w+ (test_\w+) /.exec(readOrEmpty(`/proc/${pid}/cmdline`))?.[1];

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
