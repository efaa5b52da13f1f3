import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Store, transaction } from '../../core/postgres/transaction.ts';
import { openVault, requireSomeKey } from '../../encryption_key.ts';
import { nobody } from '../../recruitment/brands/acting.ts';
import { createImport, type Import, imports, mappingOfPairs, most_bytes } from '../../recruitment/imports/import.ts';
import { type Chosen, choose } from '../chosen.ts';
import { answer, type Opened, requireWorker, withStore } from '../command.ts';
import { showProgress } from '../output/progress.ts';
import { table } from '../output/table.ts';
import { grouped } from '../payouts/tables.ts';
import { catchStop } from '../process.ts';

const poll_ms = 250;

interface ImportOptions {
  brand?: string;
  mapping: string[];
  dryRun?: boolean;
  updateExisting?: boolean;
  json?: boolean;
}

/** `rail prospects import`: imports a file and follows it. Ctrl-C ends the following alone. */
export async function importProspects(file: string, options: ImportOptions): Promise<void> {
  const document = await readDocument(file);
  const stopping = catchStop();
  await withStore(async (opened) => {
    await requireWorker(opened.store, 'nothing would import the file');
    const brand = await choose(opened, 'brand', options.brand);
    const { organization_id } = brand;
    const { id } = await create(opened, brand, document, options);
    console.error(`Created ${id}. Ctrl-C leaves it to the worker.`);
    const ended = await follow(opened.store, { organization_id, id }, stopping);
    if (!ended) return leave(id);
    answer(ended, { json: options.json, lines: linesOf(ended) });
    if (ended.state === 'failed') process.exitCode = 1;
  });
}

/** @throws Error when it is too long, or not encoded in UTF-8 */
async function readDocument(file: string): Promise<string> {
  const bytes = await readFile(file === '-' ? '/dev/stdin' : file).catch(({ code, message }) => {
    throw new Error(`${file}: ${code === 'ENOENT' ? 'no such file.' : message}`);
  });
  if (bytes.length > most_bytes) throw new Error('The file is larger than 32 MiB. Split it.');
  if (!isUtf8(bytes)) throw new Error('The file is not encoded in UTF-8. Save it as UTF-8 and try again.');
  return bytes.toString('utf8');
}

async function create(
  { store, config }: Opened,
  { id: brand_id, organization_id }: Chosen,
  document: string,
  { mapping, dryRun = false, updateExisting = false }: ImportOptions,
): Promise<Import> {
  requireSomeKey(config);
  const vault = await openVault(config, store.database);
  return transaction(store, { organization_id, request_id: null }, (tx) =>
    createImport(tx, vault, {
      ...{ brand_id, document, mapping: mappingOfPairs(mapping), by: nobody },
      ...{ dry_run: dryRun, update_existing: updateExisting },
    }),
  );
}

/** @returns the import once it has ended; undefined when it was left alone before */
async function follow(
  store: Store,
  { organization_id, id }: { organization_id: string; id: string },
  stopping: AbortSignal,
): Promise<Import | undefined> {
  using progress = showProgress();
  while (!stopping.aborted) {
    const now = await transaction(store, { organization_id, request_id: null }, (tx) => imports.get(tx, id));
    const read = now.created + now.updated + now.unchanged + now.refused;
    const total = Math.max(now.total, read);
    progress.shows(read / total, `${grouped(read)} of ${grouped(total)} rows read, ${grouped(now.refused)} refused`);
    if (now.finished_at !== null) return now;
    await sleep(poll_ms, undefined, { signal: stopping }).catch(() => {});
  }
  return undefined;
}

/** Not a failure, yet not done either. */
function leave(id: string): void {
  console.error(`${id} goes on. Follow it with: GET /recruitment/v1/imports/${id}`);
  process.exitCode = 130;
}

function linesOf({ id, state, error, dry_run, total, created, updated, unchanged, refused, errors }: Import): string[] {
  const outcome = dry_run ? `${id} was a dry run: nothing was written.` : `${id} is ${state}.`;
  const counts = [total, created, updated, unchanged, refused].map(grouped);
  const rows = errors.map(({ line, field, reason }) => [grouped(line), field ?? '', reason]);
  return [
    ...[error === null ? outcome : `${id} failed: ${error}`, ''],
    ...table(['ROWS', 'CREATED', 'UPDATED', 'UNCHANGED', 'REFUSED'], [counts], ''),
    ...(rows.length === 0 ? [] : ['', ...table(['LINE', 'FIELD', 'REFUSED BECAUSE IT'], rows, '')]),
    ...(refused > rows.length ? ['', `All refused rows: GET /recruitment/v1/imports/${id}/errors?format=csv`] : []),
  ];
}
