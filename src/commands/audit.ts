import pg from 'pg';
import sql, { raw } from 'sql-template-tag';
import { jsonText } from '../core/formats/json_text.ts';
import { run } from '../core/postgres/database.ts';
import type { Store } from '../core/postgres/transaction.ts';
import { audits } from '../products.ts';
import { withStore } from './command.ts';
import { table } from './output/table.ts';
import { catchStop } from './process.ts';

/** Something that must always hold and does not. */
export interface Violation {
  invariant: string;
  organization_id: string;
  subject_id: string;
  detail: string;
}

/**
 * Each invariant reads its tables once and joins them as sets: no plan may go through one table for each row of another, whatever the
 * statistics are, which a partitioned table has only after an ANALYZE by hand. No statement has a timeout, and all see one state.
 */
export const auditSession = `
  begin isolation level repeatable read read only;
  set local statement_timeout = 0;
  set local enable_nestloop = off;
  set local work_mem = '64MB';
  set local jit = off;
  set local cursor_tuple_fraction = 1;`;
const most_a_batch = 1_000;

/**
 * Recomputes what must always hold, of every product and of deliveries, over the whole database, as of one moment.
 * @param client connected, and in no transaction
 * @param begins called with the function that is read next
 * @param names which functions are read: all when left out
 * @returns what does not hold, as it is found
 */
export async function* violations(
  client: pg.ClientBase,
  { begins = () => {}, names = audits }: { begins?: (audit: string) => void; names?: string[] } = {},
): AsyncGenerator<Violation[]> {
  await client.query(auditSession);
  try {
    for (const audit of names) {
      begins(audit);
      yield* violationsOf(client, audit);
    }
  } finally {
    await client.query('rollback').catch(() => {});
  }
}

/** Batches begin small, so that nobody waits for the first ones. */
async function* violationsOf(client: pg.ClientBase, audit: string): AsyncGenerator<Violation[]> {
  await client.query(`
    declare violation no scroll cursor for
    select a.invariant, a.organization_id, a.subject_id, a.detail from ${audit}() as a`);
  for (let size = 1; ; size = Math.min(size * 2, most_a_batch)) {
    const batch = await run<Violation>(client, sql`fetch ${raw(String(size))} from violation`);
    if (batch.length > 0) yield batch;
    if (batch.length < size) break;
  }
  await client.query('close violation');
}

/** Exit code 1: something is wrong with the data. */
export async function audit({ json }: { json?: boolean }): Promise<void> {
  const stopping = catchStop();
  const found = await withStore(async ({ url, store }) => {
    const violations = await withClient(url, stopping, (client) => report(client, json));
    await record(store, violations);
    return violations;
  });
  if (found > 0) process.exitCode = 1;
}

/** For `/metrics`: what the last audit found, and when. A server that takes no writes can be audited too. */
async function record({ database }: Store, found: number): Promise<void> {
  await run(
    database,
    sql`insert into core.audit_result as a (violations) values (${found})
      on conflict (id) do update set finished_at = excluded.finished_at, violations = excluded.violations`,
  ).catch((error) => console.error(`rail: The result of the audit was not stored: ${error.message}`));
}

/** Prints what is found as it is found. @returns how much that is */
async function report(client: pg.Client, json: boolean | undefined): Promise<number> {
  const { print, end } = json ? oneDocument() : oneTable();
  let found = 0;
  {
    using progress = showProgress();
    for await (const batch of violations(client, progress)) {
      found += batch.length;
      progress.clear();
      print(batch);
    }
  }
  end();
  return found;
}

interface Printer {
  print(batch: Violation[]): void;
  end(): void;
}

function oneDocument(): Printer {
  let is_first = true;
  return {
    print(batch) {
      for (const one of batch) {
        process.stdout.write(`${is_first ? '[' : ','}\n  ${jsonText(one, 2).replaceAll('\n', '\n  ')}`);
        is_first = false;
      }
    },
    end: () => console.log(is_first ? '[]' : '\n]'),
  };
}

/** The columns are as wide as what is printed at a time. */
function oneTable(): Printer {
  let is_first = true;
  return {
    print(batch) {
      const lines = table(['INVARIANT', 'ORGANIZATION', 'SUBJECT', 'DETAIL'], batch.map(cells), '');
      console.log(lines.slice(is_first ? 0 : 1).join('\n'));
      is_first = false;
    },
    end: () => is_first && console.log('clean'),
  };
}

const cells = ({ invariant, organization_id, subject_id, detail }: Violation): string[] => [
  invariant,
  organization_id,
  subject_id,
  detail,
];

interface Progress extends Disposable {
  begins(audit: string): void;
  clear(): void;
}

/** On a terminal: a line that says what is checked, and for how long. */
function showProgress(): Progress {
  const began = performance.now();
  let current = '';
  const write = (text: string) => void (process.stderr.isTTY && process.stderr.write(`\r\x1b[K${text}`));
  const show = () => write(`Checking ${current}: ${Math.round((performance.now() - began) / 1_000)} s`);
  const timer = setInterval(show, 1_000);
  return {
    begins(audit) {
      current = audit;
      show();
    },
    clear: () => write(''),
    [Symbol.dispose]() {
      clearInterval(timer);
      write('');
    },
  };
}

/** The command was stopped before it was done. */
class Interrupted extends Error {
  readonly exitCode = 130;
}

/** A connection of its own. Postgres ends its statement when it is closed, whether by a signal or because this process was killed. */
async function withClient<T>(url: string, stopping: AbortSignal, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, application_name: 'rail audit' });
  client.on('error', () => {});
  const stop = () => void client.end();
  stopping.addEventListener('abort', stop);
  try {
    await client.connect();
    // Postgres on Windows cannot, and runs the statement to its end.
    await client.query("set client_connection_check_interval = '1s'").catch(() => {});
    return await work(client);
  } catch (error) {
    throw stopping.aborted ? new Interrupted('Interrupted: the audit is not complete.') : error;
  } finally {
    stopping.removeEventListener('abort', stop);
    await client.end();
  }
}
