import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type Cpu, counts_line, type FileResult, hanging_ms, no_cpu, outcomeOf } from './outcome.ts';
import { killGroup, startGroup } from './process_group.ts';
import { cpuSaid } from './profile.ts';

const main = join(import.meta.dirname, 'shared_main.ts');
/** The time in which a process must end once there is no file left for it: it writes what it has compiled, seconds of CPU time. */
const end_ms = 300_000;
/** The time-out of the process. Each file has its own, which the process keeps to. */
const no_timeout_s = 86_400;

export interface SharedProcess {
  /** Runs a test file after those that ran before. */
  run(file: string): Promise<FileResult>;
  /** Ends the process. @returns a failure where it does not end with success */
  end(): Promise<FileResult | undefined>;
}

/**
 * Runs test files one after the other in one process, which spares each of them to load and to warm up the same modules. A file that fails
 * ends the process, however it fails, and the next one begins in another: no file runs behind what a failure has left.
 */
export function shareProcess(environment: NodeJS.ProcessEnv): SharedProcess {
  let running: RunningProcess | undefined;
  return {
    async run(file) {
      running ??= start(environment);
      const result = await runIn(running, file);
      if (result.failed > 0) {
        killGroup(running.child);
        running = undefined;
      }
      return result;
    },
    end: async () => running && endOf(running),
  };
}

interface RunningProcess {
  child: ChildProcess;
  files: string[];
  /** The output of the file that runs. */
  output: string;
  /** Until the last file's end. */
  cpu: Cpu;
  closed: Promise<unknown[]>;
}

function start(environment: NodeJS.ProcessEnv): RunningProcess {
  const child = startGroup(
    [main],
    { TAP_TIMEOUT: String(no_timeout_s), ...environment },
    { stdin: 'pipe', stderr: 'pipe' },
  );
  const running: RunningProcess = { child, files: [], output: '', cpu: no_cpu, closed: once(child, 'close') };
  child.stdin?.on('error', () => {}); // it has died: that is told by its end
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: string) => {
      running.output += chunk;
    });
  return running;
}

async function runIn(running: RunningProcess, file: string): Promise<FileResult> {
  const begun = performance.now();
  running.output = '';
  running.files.push(file);
  running.child.stdin?.write(`${file}\n`);
  const timer = setTimeout(() => killGroup(running.child), hanging_ms);
  const [code, signal] = await Promise.race([running.closed, counted(running)]);
  clearTimeout(timer);
  const cpu = cpuSaid(running.output, running.cpu);
  running.cpu = cpuSaid(running.output);
  return {
    file,
    seconds: (performance.now() - begun) / 1000,
    cpu,
    ...outcomeOf(running.output, code as number | null, signal as string | null),
  };
}

/** Characters that the line of counts has at most: only what is new is searched. */
const longest_counts = 200;

/** Settles when the file has been counted, which it is by tap, also where it has failed. */
function counted(running: RunningProcess): Promise<[number, null]> {
  const { stdout } = running.child;
  return new Promise((done) => {
    const look = (chunk: string) => {
      if (!counts_line.test(running.output.slice(-chunk.length - longest_counts))) return;
      stdout?.off('data', look);
      done([0, null]);
    };
    stdout?.on('data', look);
  });
}

async function endOf(running: RunningProcess): Promise<FileResult | undefined> {
  const begun = performance.now();
  const { child, files, closed } = running;
  running.output = '';
  child.stdin?.end();
  const timer = setTimeout(() => killGroup(child), end_ms);
  const [code, signal] = (await closed) as [number | null, string | null];
  clearTimeout(timer);
  if (code === 0) return;
  const { complaint } = outcomeOf(running.output, code, signal);
  return {
    file: `the end of ${files.join(', ')}`,
    seconds: (performance.now() - begun) / 1000,
    passed: 0,
    failed: 1,
    cpu: no_cpu,
    complaint,
  };
}
