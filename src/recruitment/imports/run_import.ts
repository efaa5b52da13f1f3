/** The task of an import: reads its file, and imports it a step at a time. */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { brands } from '../brands/brand.ts';
import { barredOf, type Intended, openIntend } from '../contact/add_to_new.ts';
import { holdSuppressions } from '../prospects/barred_site.ts';
import { type KeyedHash, keyedHash } from '../prospects/keyed_hash.ts';
import { deleteChunks, readChunks } from './chunk.ts';
import { prepare } from './prepare.ts';
import type { PreparedRow } from './row.ts';
import { type FileRow, rowsOf, UnreadableFile } from './rows.ts';
import { countRows, importRows, isGood, keyOf, lockImport, type Running, readImport } from './step.ts';
import { awaitBefore, holdPlace, OutOfTurn, type Place, StepsInFlight } from './steps_in_flight.ts';

/** Rows of a step. Its transaction is short: whoever marks Do not contact waits for it. */
const most_rows = 2_000;
/** So often in a row it may begin and come to the end of no step. */
const most_interruptions = 8;

export interface ImportId {
  organization_id: string;
  request_id: string | null;
  id: string;
}

type Context = Pick<TaskContext, 'store' | 'services' | 'stopping'>;

/** Imports a file. After a worker was killed or stopped, the next one goes on behind the last step that was committed. */
export async function runImport(payload: ImportId, { store, services: { vault }, stopping }: Context): Promise<void> {
  const within = <Result>(work: (tx: Tx) => Promise<Result>) => transaction(store, payload, work);
  const begun = await within((tx) => begin(tx, vault, payload.id));
  if (!begun) return;
  const { running, hash } = begun;
  const seen = new Set<string>();
  const run = (rows: PreparedRow[], place: Place, onBegun: () => void) =>
    within((tx) => step(tx, vault, { running, place, rows, seen, onBegun }));
  const flight = new StepsInFlight(running.id, running.dry_run, run);
  try {
    let read = 0;
    const steps = stepsOf(rowsOf(running, readChunks(store, vault, payload)));
    for await (const rows of readAhead(prepare(steps, { ...running, intend: await openIntend(vault, hash) }))) {
      const is_read = Math.max(0, running.rows_read - read);
      const left = rows.slice(is_read);
      read += rows.length;
      if (running.dry_run) remember(rows.slice(0, is_read), seen);
      if (left.length === 0) continue;
      if (!(await flight.begin(read - left.length, left))) return;
      if (running.dry_run) remember(left, seen);
      if (!stopping.aborted) continue;
      if (await flight.end()) await within(async (tx) => tx.enqueue('recruitment/import_prospects', payload));
      return;
    }
    if (await flight.end()) await within((tx) => finish(tx, payload.id, read));
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error;
    if (await flight.end()) await within((tx) => fail(tx, payload.id, error.message));
  } finally {
    await flight.settle();
  }
}

interface Begun {
  running: Running;
  /** The keyed hash of the organization: rows are hashed before their step begins. */
  hash: KeyedHash;
}

async function begin(tx: Tx, vault: Vault, id: string): Promise<Begun | undefined> {
  const running = await lockImport(tx, id);
  if (!running) return undefined;
  if (running.interruptions >= most_interruptions) {
    await fail(tx, id, 'Interrupted too often.');
    return undefined;
  }
  await tx.all(sql`
    update recruitment.import t
    set state = 'running', interruptions = t.interruptions + 1, started_at = coalesce(t.started_at, ${tx.now}::timestamptz),
      updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${id}`);
  return { running, hash: await keyedHash(tx, vault) };
}

/** Reads the next ones while Postgres is busy with those before. */
async function* readAhead<Rows>(steps: AsyncGenerator<Rows>): AsyncGenerator<Rows> {
  let next = steps.next();
  // A failure is thrown where its step is due.
  next.catch(() => {});
  try {
    for (;;) {
      const { done, value } = await next;
      if (done) return;
      next = steps.next();
      next.catch(() => {});
      yield value;
    }
  } finally {
    await next.catch(() => {});
    await steps.return(undefined);
  }
}

/** Rows before the place where a file becomes unreadable are a step too. */
async function* stepsOf(rows: AsyncIterable<FileRow>): AsyncGenerator<FileRow[]> {
  let some: FileRow[] = [];
  let failure: unknown;
  try {
    for await (const row of rows) {
      some.push(row);
      if (some.length < most_rows) continue;
      yield some;
      some = [];
    }
  } catch (error) {
    failure = error;
  }
  if (some.length > 0) yield some;
  if (failure) throw failure;
}

/** A dry run that goes on must know which prospects it has counted. */
function remember(rows: PreparedRow[], seen: Set<string>): void {
  for (const row of rows.filter(isGood)) seen.add(keyOf(row));
}

interface Step {
  running: Running;
  place: Place;
  rows: PreparedRow[];
  seen: Set<string>;
  onBegun: () => void;
}

/** @returns false where the import has ended, or another worker goes on with it  @throws OutOfTurn */
async function step(tx: Tx, vault: Vault, { running, place, rows, seen, onBegun }: Step): Promise<boolean> {
  // A brand is deleted under the lock of suppressions: one that is there now stays until the transaction ends.
  const [, progress, barred, brand] = await Promise.all([
    holdPlace(tx, place).then(onBegun),
    readImport(tx, running.id),
    barredOfRows(tx, rows),
    brands.find(tx, sql`${tenant(tx)} and t.id = ${running.brand_id} and t.deleted_at is null`),
  ]);
  if (progress === undefined || progress.rows_read > place.first) return false;
  const outcomes = brand && (await importRows(tx, vault, running, { rows, barred, seen }));
  await takeTurn(tx, place);
  if (outcomes) countRows(tx, running.id, rows, outcomes);
  else await fail(tx, running.id, 'The brand was deleted.');
  return outcomes !== undefined;
}

/** The steps before have committed, and this one is the next. @throws OutOfTurn */
async function takeTurn(tx: Tx, place: Place): Promise<void> {
  const taken = Promise.all([awaitBefore(tx, place), lockImport(tx, place.import_id)]);
  // Meanwhile.
  tx.renderEmitted();
  const [, now] = await taken;
  if (now?.rows_read !== place.first) throw new OutOfTurn();
}

/** Returns the addresses that are barred, which stays so until the transaction ends. */
async function barredOfRows(tx: Tx, rows: PreparedRow[]): Promise<Set<Intended>> {
  const held = holdSuppressions(tx);
  const addresses = rows.flatMap(({ address }) => address ?? []);
  const [barred] = await Promise.all([barredOf(tx, addresses), held]);
  return barred;
}

async function finish(tx: Tx, id: string, read: number): Promise<void> {
  const now = await lockImport(tx, id);
  if (now?.rows_read !== read) return;
  await deleteChunks(tx, id);
  await tx.all(sql`
    update recruitment.import t
    set state = 'done', total = t.rows_read, finished_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${id}`);
}

async function fail(tx: Tx, id: string, error: string): Promise<void> {
  if (!(await lockImport(tx, id))) return;
  await deleteChunks(tx, id);
  await tx.all(sql`
    update recruitment.import t
    set state = 'failed', error = ${error}, finished_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${id}`);
}
