import sql from 'sql-template-tag';
import { sha256 } from '../encryption/vault.ts';
import type { Asked } from '../pool/lending.ts';
import { type Batched, batched } from '../postgres/batch.ts';
import { type Database, runFor } from '../postgres/database.ts';
import type { Caller } from '../resource/operation.ts';

/** A key as core.authenticate() gives it. */
interface Row extends Caller {
  signature_required: boolean;
  revoked: boolean;
  expired: boolean;
  /** The networks that requests may come from; null: all. */
  ip_ranges: string[] | null;
  rate_limit: number;
  /** The number of requests that this process may let through. */
  granted: number;
  /** The number that all processes were granted in the second, this time included. */
  used: number;
  /** The second of Postgres' clock, in Unix time. */
  second: number;
  /** The rest of that second. */
  left_ms: number;
}

/** A key, and what remains of its second after this request: below 0 where it may not be made. */
export type Counted = Omit<Row, 'granted' | 'used' | 'left_ms'> & { remaining: number };

/** The requests that Postgres granted for one second. */
class Lease {
  readonly #row: Row;
  readonly #until: number;
  #left: number;

  /** @param asked when Postgres was asked, by `performance.now()`: its second is not over sooner than it says from then on */
  constructor(row: Row, asked: number) {
    this.#row = row;
    this.#until = asked + row.left_ms;
    this.#left = row.granted;
  }

  get isOver(): boolean {
    return performance.now() >= this.#until;
  }

  /** Returns whether it decides about a request: there is something left, or nothing more to be granted. */
  get suffices(): boolean {
    const { revoked, expired, used, rate_limit } = this.#row;
    return this.#left > 0 || revoked || expired || used >= rate_limit;
  }

  take(): Counted {
    const { granted: _, used, left_ms: __, ...key } = this.#row;
    if (this.#left === 0) return { ...key, remaining: -1 };
    this.#left--;
    return { ...key, remaining: key.rate_limit - (used - this.#left) };
  }
}

/** Beyond this many keys, those whose lease is over are forgotten. */
const most_keys = 1_000;

interface Key {
  lease?: Lease;
  ask: Batched<Asked, Counted | undefined>;
}

/**
 * Counts the requests of keys. Postgres grants them: to a process for all that wait in it, and of a high limit some more, which need not ask until the
 * second is over. So a key that was revoked, has expired or was changed is another one in every process within a second, without a notification.
 */
export class KeyLeases {
  readonly #keys = new Map<string, Key>();

  /** @returns undefined where there is no such key */
  async count(database: Database, secret: string, asked: Asked): Promise<Counted | undefined> {
    const digest = sha256(secret);
    const { lease, ask } = this.#keyOf(digest, database);
    return lease?.suffices && !lease.isOver ? lease.take() : ask(asked);
  }

  #keyOf(digest: Buffer, database: Database): Key {
    const name = digest.toString('base64');
    const known = this.#keys.get(name);
    if (known) return known;
    if (this.#keys.size >= most_keys) this.#forget();
    const key: Key = { ask: batched((those) => askFor(database, digest, key, those), { most: 1_000 }) };
    this.#keys.set(name, key);
    return key;
  }

  #forget(): void {
    for (const [name, { lease }] of this.#keys) if (lease?.isOver !== false) this.#keys.delete(name);
  }
}

/** Asks for all, as long as somebody waits for the first one, and else for the next. */
async function askFor(database: Database, digest: Buffer, key: Key, those: Asked[]): Promise<(Counted | undefined)[]> {
  const isWaitedFor = ({ signal }: Asked) => !signal.aborted;
  const first = those.find(isWaitedFor) ?? (those[0] as Asked);
  const begun = performance.now();
  try {
    const [row] = await runFor<Row>(database, first, statement(digest, those.length));
    const lease = row && new Lease(row, begun);
    if (lease) key.lease = lease;
    return those.map(() => lease?.take());
  } catch (error) {
    if (isWaitedFor(first) || !those.some(isWaitedFor)) throw error;
    return askFor(database, digest, key, those);
  }
}

const statement = (digest: Buffer, waiting: number) => sql`
  select organization_id, api_key_id, mode, scopes, signature_required, revoked, expired, ip_ranges, rate_limit, granted, used, second, left_ms
  from core.authenticate(${digest}, ${waiting})`;
