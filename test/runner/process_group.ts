import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';

const first = join(import.meta.dirname, 'without_domains.ts');

/**
 * Room for what lives for one request, in MiB: within V8's own limit of 16, collecting it takes a fifth of a test's CPU time. It does not change
 * which compiled code V8 accepts.
 */
const nursery = '--max-semi-space-size=32';

const running = new Set<ChildProcess>();

/**
 * Starts Node as the head of a group of processes that ends as a whole. That is plain Node: tap's command would load a tracer of modules into
 * it and into every process that it starts, which costs more than most of the test files do.
 */
export function startGroup(
  args: string[],
  environment: NodeJS.ProcessEnv,
  { stdin, stderr }: { stdin: 'ignore' | 'pipe'; stderr: 'inherit' | 'pipe' },
): ChildProcess {
  const child = spawn(process.execPath, [nursery, '--import', first, ...args], {
    env: { ...process.env, ...environment },
    stdio: [stdin, 'pipe', stderr],
    detached: true,
  });
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8');
  running.add(child);
  child.once('close', () => running.delete(child));
  return child;
}

export function killGroup({ pid }: ChildProcess): void {
  try {
    process.kill(-(pid as number), 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Ends the test files that run, and the processes that they have started. Their results never come. */
export function killTestFiles(): void {
  for (const child of running) {
    child.removeAllListeners('close');
    killGroup(child);
  }
}
