import { readConfig } from '../config.ts';
import { migrate } from '../core/postgres/migrate.ts';
import { createLog, openPostgres, reachPostgres } from '../service.ts';
import { answer } from './command.ts';
import { max_wait_ms } from './process.ts';

export async function runMigrate({ json }: { json?: boolean }): Promise<void> {
  const config = readConfig();
  const log = createLog(config);
  const postgres = await openPostgres(config, 'use', log);
  try {
    const url = await reachPostgres(postgres, config, { log, max_wait_ms });
    const applied = await migrate(url, (line) => log.warn(line));
    const lines =
      applied.length === 0 ? ['Nothing to do: the database is up to date.'] : applied.map((name) => `ran ${name}`);
    answer({ applied }, { json, lines });
  } finally {
    await postgres.stop();
  }
}
