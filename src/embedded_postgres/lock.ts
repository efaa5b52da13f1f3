/**
 * Locks between processes that end with their holder. SQLite's locks on a file do that: the kernel drops them however a process ends, so no
 * lock is ever stale and no recycled pid is mistaken for a holder. The files stay empty.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

/** `shared`: many at once. `reserved`: one, beside shared ones. `exclusive`: one, and none of the others. */
export type LockKind = 'shared' | 'reserved' | 'exclusive';

export interface Lock {
  release(): void;
}

const SQLITE_BUSY = 5;
const BEGIN = {
  shared: 'begin; select * from sqlite_schema',
  reserved: 'begin immediate',
  exclusive: 'begin exclusive',
};

/** Reached from here, connections are not collected as garbage, which would drop their locks. */
const held = new Set<DatabaseSync>();

/** Takes a file, made when missing, and a kind of lock. Gives the lock, or undefined when another holder forbids it; never waits. */
export function tryLock(file: string, kind: LockKind): Lock | undefined {
  // A file that is there must not be opened but by SQLite: closing it would drop this process's own locks on it.
  if (!existsSync(file)) writeFileSync(file, '', { mode: 0o600, flag: 'a' });
  const connection = new DatabaseSync(file, { timeout: 0 });
  try {
    connection.exec(`pragma journal_mode = memory; ${BEGIN[kind]}`);
  } catch (error) {
    connection.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return undefined;
    throw error;
  }
  held.add(connection);
  return {
    release() {
      if (held.delete(connection)) connection.close();
    },
  };
}
