import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** How long a file may take that does not say so by `t.setTimeout`. The tap in its process keeps to it. */
const timeout_s = 300;
/** No file takes as long: what still runs then hangs. */
const hanging_ms = 20 * 60_000;

export interface FileResult {
  file: string;
  seconds: number;
  /** Asserts. */
  passed: number;
  failed: number;
  /** What went wrong, as tap says it; empty when nothing did. */
  complaint: string;
}

const running = new Set<ChildProcess>();

/**
 * Runs a test file in a process of its own. That is plain Node: tap's command would load a tracer of modules into it and into every process that
 * it starts, which costs more than most of the files do.
 * @param isAlone shows at once what the file says on standard error
 */
export async function runTestFile(
  file: string,
  environment: NodeJS.ProcessEnv,
  { isAlone }: { isAlone: boolean },
): Promise<FileResult> {
  const begun = performance.now();
  const child = spawn(process.execPath, [file], {
    env: { ...process.env, TAP_TIMEOUT: String(timeout_s), ...environment },
    stdio: ['ignore', 'pipe', isAlone ? 'inherit' : 'pipe'],
    detached: true, // a group of its own, that ends as a whole
  });
  running.add(child);
  const timer = setTimeout(() => killGroup(child), hanging_ms);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  const [code, signal] = await once(child, 'close');
  clearTimeout(timer);
  running.delete(child);
  return { file, seconds: (performance.now() - begun) / 1000, ...outcomeOf(output, code, signal) };
}

/** Ends the files that run, and the processes that they have started. Their results never come. */
export function killTestFiles(): void {
  for (const child of running) {
    child.removeAllListeners('close');
    killGroup(child);
  }
}

function killGroup({ pid }: ChildProcess): void {
  try {
    process.kill(-(pid as number), 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** A process that ends otherwise than with success, or before it has counted its asserts, is a failure also when no assert was one. */
function outcomeOf(output: string, code: number | null, signal: string | null) {
  const total = /^# \{ total: \d+, pass: (\d+)(?:, fail: (\d+))?.*\}$/m.exec(output);
  const passed = Number(total?.[1] ?? 0);
  const counted = Number(total?.[2] ?? 0);
  const isBroken = code !== 0 || total === null;
  const failed = isBroken ? Math.max(counted, 1) : counted;
  const end = signal ? `ended by ${signal}` : `exit code ${code}`;
  return { passed, failed, complaint: failed === 0 ? '' : `${withoutSuccesses(output)}\n# ${end}` };
}

function withoutSuccesses(output: string): string {
  return output
    .split('\n')
    .filter((line) => !/^\s*(ok \d+|\d+\.\.\d+$|TAP version|$)/.test(line))
    .join('\n');
}
