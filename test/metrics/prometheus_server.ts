/** A Prometheus with its promtool: the system's, or Debian's package, unpacked and not installed. */
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Json } from '../harness.ts';
import { stablePort } from '../ports.ts';
import { findOrUnpack } from '../servers/debian.ts';

const runs = promisify(execFile);
const ready_ms = 60_000;

/** @returns where the programs are. @throws Error where the machine has none, and no Debian package of them can be had */
export async function findPrometheus(): Promise<string> {
  const { bin } = await findOrUnpack('promtool', 'usr/bin', ['prometheus']);
  return bin;
}

/** @throws Error that says what promtool says, where it does not accept the file of rules */
export async function checkRules(programs: string, rules: string): Promise<void> {
  const file = join(await mkdtemp(join(tmpdir(), 'rail-rules-')), 'rail.rules.yml');
  await writeFile(file, rules);
  await runs(join(programs, 'promtool'), ['check', 'rules', '--lint=all', '--lint-fatal', file]);
}

/** A rule, as it stands at the moment. */
export interface RuleState {
  name: string;
  state: 'inactive' | 'pending' | 'firing';
  lastError?: string;
}

export interface Prometheus {
  /** The series of an expression. @throws Error where Prometheus refuses it */
  query(expr: string): Promise<Json[]>;
  rules(): Promise<RuleState[]>;
}

/** Scrapes these ports every two seconds, judges the rules each second, until the stack is disposed of. */
export async function startPrometheus(
  stack: AsyncDisposableStack,
  programs: string,
  { ports, rules }: { ports: () => number[]; rules: string },
): Promise<Prometheus & { retarget(): Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'rail-prometheus-'));
  const targets = join(directory, 'targets.json');
  const retarget = () =>
    writeFile(targets, JSON.stringify([{ targets: ports().map((port) => `127.0.0.1:${port}`), labels: {} }]));
  await retarget();
  await writeFile(join(directory, 'rail.rules.yml'), rules);
  const config = {
    global: { scrape_interval: '2s', scrape_timeout: '2s', evaluation_interval: '1s' },
    rule_files: ['rail.rules.yml'],
    scrape_configs: [{ job_name: 'rail', file_sd_configs: [{ files: [targets], refresh_interval: '1s' }] }],
  };
  await writeFile(join(directory, 'prometheus.yml'), JSON.stringify(config));
  const port = await stablePort();
  const child = spawn(
    join(programs, 'prometheus'),
    [
      `--config.file=${join(directory, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(directory, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: ['ignore', 'ignore', 'ignore'] },
  );
  stack.defer(() => void child.kill('SIGKILL'));
  const ask = async (path: string): Promise<Json> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    const { status, data, error } = (await response.json()) as Json;
    if (status !== 'success') throw new Error(error);
    return data;
  };
  for (const end = performance.now() + ready_ms; ; await sleep(200)) {
    if (await ask('/api/v1/rules').catch(() => undefined)) break;
    if (performance.now() > end) throw new Error('Prometheus does not answer.');
  }
  return {
    retarget,
    query: async (expr) => (await ask(`/api/v1/query?query=${encodeURIComponent(expr)}`)).result,
    rules: async () => (await ask('/api/v1/rules')).groups.flatMap((group: { rules: RuleState[] }) => group.rules),
  };
}
