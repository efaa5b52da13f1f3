import { batched } from '../postgres/batch.ts';
import { unavailability } from '../postgres/errors.ts';
import { type Store, type TransactionOptions, type Tx, transaction } from '../postgres/transaction.ts';
import { Problem } from '../values/problem.ts';

type Asked = NonNullable<TransactionOptions['asked']>;

/** Many more would keep the first of them waiting for long. */
const most = 100;

export interface SharedTransaction<Member, Ahead, Result> {
  /** Waits for a transaction as long as an answer may take. */
  within: <Done>(work: (asked: Asked) => Promise<Done>) => Promise<Done>;
  /** They write nothing. */
  only_reads?: boolean | undefined;
  /** Reads the facts that members are checked against, with the begin of the transaction. */
  ahead?: ((tx: Tx, members: Member[]) => Promise<Ahead>) | undefined;
  /** Gives what each comes to, in their order; undefined for one that is to be done elsewhere. It may be run again, for some of them. */
  run: (tx: Tx, members: Member[], ahead: Ahead) => Promise<(Result | Problem | undefined)[]>;
  /** True if a single member is done elsewhere. */
  leaves_one?: boolean | undefined;
}

type Outcome<Result> = { result: Result | undefined } | { error: unknown };

/**
 * Lets requests of an organization share a transaction, its round trips and its commit: those that come in one turn of the event loop, and those
 * that come while the one before is at work. Each hears of its own outcome after the commit. Where a transaction fails for one of them, each is done
 * by itself.
 * @returns undefined for one that is to be done elsewhere
 */
export function inSharedTransaction<Member, Ahead, Result>(
  store: Store,
  { only_reads, ...shared }: SharedTransaction<Member, Ahead, Result>,
): (organization_id: string, member: Member) => Promise<Result | undefined> {
  const together = async (organization_id: string, members: Member[]): Promise<(Result | Problem | undefined)[]> => {
    if (shared.leaves_one && members.length === 1) return [undefined];
    return shared.within((asked) => {
      const ahead = shared.ahead && ((tx: Tx) => (shared.ahead as NonNullable<typeof shared.ahead>)(tx, members));
      return transaction(store, { organization_id, request_id: null, only_reads, asked, ahead }, async (tx) =>
        shared.run(tx, members, (await tx.ahead) as Ahead),
      );
    });
  };
  const outcomes = async (organization_id: string, members: Member[]): Promise<Outcome<Result>[]> => {
    try {
      return (await together(organization_id, members)).map(outcomeOf);
    } catch (error) {
      if (members.length === 1 || error instanceof Problem || unavailability(error)) throw error;
    }
    const alone: Outcome<Result>[] = [];
    for (const member of members) {
      alone.push(...(await together(organization_id, [member]).then((one) => one.map(outcomeOf), failed)));
    }
    return alone;
  };

  const open = new Map<string, { join: (member: Member) => Promise<Outcome<Result>>; members: number }>();
  return async (organization_id, member) => {
    const own = open.get(organization_id) ?? {
      join: batched((members: Member[]) => outcomes(organization_id, members), { most }),
      members: 0,
    };
    open.set(organization_id, own);
    own.members += 1;
    try {
      const outcome = await own.join(member);
      if ('error' in outcome) throw outcome.error;
      return outcome.result;
    } finally {
      own.members -= 1;
      if (own.members === 0) open.delete(organization_id);
    }
  };
}

const outcomeOf = <Result>(result: Result | Problem | undefined): Outcome<Result> =>
  result instanceof Problem ? { error: result } : { result };

const failed = (error: unknown): [{ error: unknown }] => [{ error }];
