import sql from 'sql-template-tag';
import { sha256 } from '../encryption/vault.ts';
import type { Asked } from '../pool/lending.ts';
import { type Database, runFor } from '../postgres/database.ts';
import type { Caller } from '../resource/operation.ts';

/** A key as core.authenticate() gives it. */
interface Row extends Caller {
  signature_required: boolean;
  revoked: boolean;
  rate_limit: number;
  /** How many requests this process may let through. */
  granted: number;
  /** What all processes were granted in the second, this time included. */
  used: number;
  /** Of Postgres' clock, in Unix seconds. */
  second: number;
  /** How long it goes on. */
  left_ms: number;
}

/** A key, and what remains of its second after this request: below 0 where it may not be made. */
export type Counted = Omit<Row, 'granted' | 'used' | 'left_ms'> & { remaining: number };

/** What Postgres granted of one second. */
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

  /** Whether it says of a request what becomes of it: there is something left, or nothing more to be granted. */
  get suffices(): boolean {
    return this.#left > 0 || this.#row.revoked || this.#row.used >= this.#row.rate_limit;
  }

  take(): Counted {
    const { granted: _, used, left_ms: __, ...key } = this.#row;
    if (this.#left === 0) return { ...key, remaining: -1 };
    this.#left--;
    return { ...key, remaining: key.rate_limit - (used - this.#left) };
  }
}

interface Waiting extends PromiseWithResolvers<Counted | undefined> {
  asked: Asked;
}

/** Beyond this many keys, the leases that are over are forgotten. */
const most_leases = 1_000;

/**
 * Counts the requests of keys. Postgres grants them: to a process for all that wait in it, and of a high limit some more, which need not ask until the
 * second is over. So a key that is revoked or changed is another one in every process within a second, although nobody is told.
 */
export class KeyLeases {
  readonly #leases = new Map<string, Lease>();
  readonly #waiting = new Map<string, Waiting[]>();

  /** @returns undefined where there is no such key */
  async count(database: Database, secret: string, asked: Asked): Promise<Counted | undefined> {
    const digest = sha256(secret);
    const key = digest.toString('base64');
    const lease = this.#leases.get(key);
    if (lease?.suffices && !lease.isOver) return lease.take();
    const turn = { ...Promise.withResolvers<Counted | undefined>(), asked };
    const waiting = this.#waiting.get(key);
    if (waiting) waiting.push(turn);
    else void this.#ask(database, digest, key, turn);
    return turn.promise;
  }

  /** Asks for a request, and then for those of the same key that came meanwhile. */
  async #ask(database: Database, digest: Buffer, key: string, first: Waiting): Promise<void> {
    let turns = [first];
    while (turns.length > 0) {
      const meanwhile: Waiting[] = [];
      this.#waiting.set(key, meanwhile);
      turns = [...(await this.#askFor(database, digest, key, turns)), ...meanwhile];
    }
    this.#waiting.delete(key);
  }

  /** @returns those for whom it could not ask, but for the first one, who is told why */
  async #askFor(database: Database, digest: Buffer, key: string, turns: Waiting[]): Promise<Waiting[]> {
    const [first, ...others] = turns as [Waiting, ...Waiting[]];
    const asked = performance.now();
    try {
      const [row] = await runFor<Row>(database, first.asked, statement(digest, turns.length));
      const lease = row && new Lease(row, asked);
      if (lease) this.#keep(key, lease);
      for (const turn of turns) turn.resolve(lease?.take());
      return [];
    } catch (error) {
      first.reject(error);
      return others;
    }
  }

  #keep(key: string, lease: Lease): void {
    if (this.#leases.size >= most_leases) {
      for (const [name, { isOver }] of this.#leases) if (isOver) this.#leases.delete(name);
    }
    this.#leases.set(key, lease);
  }
}

const statement = (digest: Buffer, waiting: number) => sql`
  select organization_id, api_key_id, mode, scopes, signature_required, revoked, rate_limit, granted, used, second, left_ms
  from core.authenticate(${digest}, ${waiting})`;
