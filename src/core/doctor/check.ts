import type pg from 'pg';
import type { Sql } from 'sql-template-tag';
import { run } from '../postgres/database.ts';

export type State = 'ok' | 'warning' | 'error';

/** The finding of a check. */
export interface Finding {
  state: State;
  /** With the value, as a sentence. */
  text: string;
  /** The remedy. */
  remedy?: string;
}

export type Session = Pick<pg.ClientBase, 'query'>;

export interface Check<Read> {
  /** Its area, and what it looks at: `postgres/connections`. */
  name: string;
  /** In a transaction that only reads. */
  read(on: Session): Promise<Read>;
  /** Pure: reads nothing further. */
  assess(found: Read): Finding;
}

// biome-ignore lint/suspicious/noExplicitAny: each check reads what it likes
export type AnyCheck = Check<any>;

/** Has the type of what is read follow from `read`. */
export const check = <Read>(given: Check<Read>): AnyCheck => given;

/** A check that reads rows by one statement. */
export const rowsOf =
  <Row extends object>(statement: Sql): ((on: Session) => Promise<Row[]>) =>
  (on) =>
    run<Row>(on as pg.Pool, statement);

/** The same of a statement that gives one row. */
export const rowOf =
  <Row extends object>(statement: Sql): ((on: Session) => Promise<Row>) =>
  async (on) =>
    (await run<Row>(on as pg.Pool, statement))[0] as Row;

export const ok = (text: string): Finding => ({ state: 'ok', text });
export const warning = (text: string, remedy?: string): Finding => finding('warning', text, remedy);
export const error = (text: string, remedy?: string): Finding => finding('error', text, remedy);

const finding = (state: State, text: string, remedy: string | undefined): Finding =>
  remedy === undefined ? { state, text } : { state, text, remedy };

export interface Line extends Finding {
  name: string;
}

/** No check may take longer, or wait longer for a lock. */
const statement_ms = 5_000;
const lock_ms = 1_000;
const lock_timeout_code = '55P03';

/**
 * Does the checks in their order, those of the database each in a transaction of its own. One that fails says so, and is no error.
 * @param on left out where the checks read nothing of the database
 */
export async function* examine(checks: AnyCheck[], on?: Session): AsyncGenerator<Line> {
  for (const { name, read, assess } of checks) {
    const found = on ? inTransaction(on, read) : read(nowhere);
    yield { name, ...(await found.then(assess).catch(unchecked)) };
  }
}

/** For checks of what is not in the database. */
const nowhere: Session = {
  query: () => {
    throw new Error('This check has no database.');
  },
};

async function inTransaction<Read>(on: Session, read: (on: Session) => Promise<Read>): Promise<Read> {
  try {
    await on.query(
      `begin read only; set local statement_timeout = ${statement_ms}; set local lock_timeout = ${lock_ms}; set local jit = off`,
    );
    return await read(on);
  } finally {
    await on.query('rollback').catch(() => {});
  }
}

function unchecked(failure: unknown): Finding {
  const { message, code } = failure as { message?: string; code?: string };
  const is_locked = code === lock_timeout_code;
  return warning(
    `could not be checked: ${message || code}`,
    is_locked ? 'A session keeps locked what it reads: see postgres/locks.' : undefined,
  );
}

/** Returns whether a check failed because the database lacks the tables that it reads. */
export const isLacking = ({ text }: Finding): boolean => /^could not be checked: .* does not exist/.test(text);
