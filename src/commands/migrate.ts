import pg from 'pg';
import { readConfig } from '../config.ts';
import { size } from '../core/doctor/amounts.ts';
import { migrate } from '../core/postgres/migrate.ts';
import { type Plan, planMigration } from '../core/postgres/plan.ts';
import { createLog, openPostgres, reachPostgres } from '../service.ts';
import { answer } from './command.ts';
import { table } from './output/table.ts';
import { max_wait_ms } from './process.ts';

export async function runMigrate({ json, plan }: { json?: boolean; plan?: boolean }): Promise<void> {
  const config = readConfig();
  const log = createLog(config);
  const postgres = await openPostgres(config, 'use', log);
  try {
    const url = await reachPostgres(postgres, config, { log, max_wait_ms });
    if (plan) return await showPlan(url, { json });
    const applied = await migrate(url, (line) => log.warn(line));
    const lines =
      applied.length === 0 ? ['Nothing to do: the database is up to date.'] : applied.map((name) => `ran ${name}`);
    answer({ applied }, { json, lines });
  } finally {
    await postgres.stop();
  }
}

async function showPlan(url: string, { json }: { json?: boolean | undefined }): Promise<void> {
  const client = new pg.Client({ connectionString: url, application_name: 'rail migrate' });
  await client.connect();
  try {
    await client.query('begin read only');
    const plan = await planMigration(client);
    answer(plan, { json, lines: linesOf(plan) });
  } finally {
    await client.end();
  }
}

const nothing = 'It locks no table that is there.';

function linesOf({ is_new, steps, warnings }: Plan): string[] {
  if (is_new) return ['The database is new: all migrations run, and nobody waits.'];
  if (steps.length === 0) return ['Nothing to do: the database is up to date.'];
  const lines = steps.flatMap(({ files, in_transaction, tables }, nth) => {
    const rows = tables.map(({ table, rows, bytes, lock, work, keeps_waiting, seconds }) => {
      return [table, rows, size(bytes), lock, work === 'none' ? 'nothing' : work, keeps_waiting, `${seconds} s`];
    });
    const columns = ['TABLE', 'ROWS', 'SIZE', 'LOCK', 'GOES THROUGH IT', 'KEEPS WAITING', 'FOR AT MOST'];
    return [
      `${nth === 0 ? '' : '\n'}${in_transaction ? 'In one transaction' : 'Outside a transaction'}: ${files.join(', ')}`,
      ...table(columns, rows, nothing),
    ];
  });
  const waits = 'A lock that is not free within 3 seconds is given up, and tried again later.';
  return [...lines, '', waits, ...warnings.map((line) => `Not online: ${line}`)];
}
