/** A Postgres that can be killed and opened again, with a gate before it whose address stays the same. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { migrate } from '../../src/core/postgres/migrate.ts';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../src/embedded_postgres/embedded_postgres.ts';
import { copyPrepared } from '../postgres.ts';
import { type Gate, startGate } from '../processes.ts';

export interface MortalPostgres {
  /** Through the gate. */
  url: string;
  gate: Gate;
  /** Kills the postmaster and then all of its processes. */
  kill(): Promise<void>;
  /** Opens the same data, probably at another port. */
  reopen(): Promise<void>;
}

/** @param settings of Postgres, beside those that the service's own one has */
export async function startMortalPostgres(settings: Record<string, string> = {}): Promise<MortalPostgres> {
  const dataDir = await mkdtemp(join(tmpdir(), 'rail-crash-'));
  await copyPrepared(dataDir);
  let postgres: EmbeddedPostgres = await openEmbeddedPostgres({ dataDir, mode: 'own', settings });
  t.teardown(async () => {
    await postgres.stop();
    await rm(dataDir, { recursive: true, force: true });
  });
  await migrate(postgres.url);
  const gate = await startGate(postgres.url);
  return {
    url: gate.url,
    gate,
    kill: () => killProcesses(dataDir),
    async reopen() {
      await postgres.stop();
      postgres = await openEmbeddedPostgres({ dataDir, mode: 'own', settings });
      gate.leadTo(Number(new URL(postgres.url).port));
    },
  };
}

async function killProcesses(dataDir: string): Promise<void> {
  const [pid] = (await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8')).split('\n').map(Number);
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=']);
  const processes = stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number));
  const children = processes.filter(([, parent]) => parent === pid).map(([child]) => child as number);
  for (const each of [pid as number, ...children]) {
    try {
      process.kill(each, 'SIGKILL');
    } catch (error) {
      // Its children end by themselves when the postmaster is gone.
      if ((error as { code?: string }).code !== 'ESRCH') throw error;
    }
  }
}
