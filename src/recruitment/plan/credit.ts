import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { type Operation, readOperations } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { documentedEnum, id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { base_path } from '../events/base_path.ts';
import { creditsOf, monthOf, type PlanName } from './limits.ts';

const reasons = {
  month_began: 'the credits of a month',
  plan_changed: 'the plan was changed',
  search: 'a search',
  scan: 'a scan that you requested',
  reveal: 'a reveal of the addresses of a prospect',
} as const;

export const creditEntries = resource({
  object: 'credit_entry',
  plural: 'credits',
  listed_as: 'the entries of the ledger of credits',
  scoped_as: 'plan',
  base_path,
  table: 'recruitment.credit_entry',
  unique: { credit_entry_number_unique: null, credit_entry_balance_unique: null },
  doc: 'An entry of the ledger of credits. Entries are never changed.',
  fields: {
    id: id('fcr'),
    object: objectName('credit_entry'),
    kind: z
      .enum(['grant', 'spend', 'refund', 'adjust'])
      .describe(
        '`grant`: credits were added. `spend`: a credit was charged. `refund`: a credit was refunded. `adjust`: credits left over from the previous month or plan were removed.',
      ),
    amount: z.int().describe('How many credits. Negative if they were charged or removed.'),
    balance: z.int().describe('The balance after this entry. On a plan without limits it can be negative.'),
    reason: documentedEnum(reasons),
    search_id: text.nullable().describe('The search (`fsc_…`) that the entry is about. Null if none.'),
    scan_id: text.nullable().describe('The scan (`fsc_…`) that the entry is about. Null if none.'),
    prospect_id: text.nullable().describe('The prospect (`fdi_…`) of the reveal. Null if none.'),
    created_at: timestamp,
  },
});

/** The ledger over REST. */
export const creditOperations: Operation[] = readOperations({ resource: creditEntries, by: ['kind'] }).filter(
  ({ name }) => name.endsWith('.list'),
);

/** The credits of a plan; its row is locked until the transaction ends. */
export interface Account {
  name: PlanName;
  spending_ceiling_minor: number | null;
  credit_month: string | null;
  last_credit_number: number | null;
  credit_balance: number;
}

/** Locks the organization's plan, which is made where there is none yet: entries of its ledger follow one another. */
export async function lockAccount(tx: Tx): Promise<Account> {
  await tx.all(sql`
    insert into recruitment.plan (organization_id, created_at, updated_at)
    values (${tx.organization_id}, ${tx.now}, ${tx.now}) on conflict do nothing`);
  return tx.one<Account>(sql`
    select p.name, p.spending_ceiling_minor, p.credit_month::text, p.last_credit_number, p.credit_balance
    from recruitment.plan p
    where p.organization_id = ${tx.organization_id}
    for update`);
}

/** The subject of an entry. */
export type About = Partial<Record<'search_id' | 'scan_id' | 'prospect_id', string>>;
type Work = 'search' | 'scan' | 'reveal';

interface NewEntry extends About {
  kind: 'grant' | 'spend' | 'refund' | 'adjust';
  amount: number;
  reason: keyof typeof reasons;
}

/** Writes an entry. @returns the account after it */
async function write(tx: Tx, account: Account, entry: NewEntry): Promise<Account> {
  const number = (account.last_credit_number ?? 0) + 1;
  const balance = account.credit_balance + entry.amount;
  await insert(tx, 'recruitment.credit_entry', {
    ...entry,
    ...{ id: newId('fcr'), number, balance_before: account.credit_balance, balance, created_at: tx.now },
  });
  await tx.all(sql`
    update recruitment.plan
    set last_credit_number = ${number}, credit_balance = ${balance}, updated_at = ${tx.now}::timestamptz
    where organization_id = ${tx.organization_id}`);
  return { ...account, last_credit_number: number, credit_balance: balance };
}

/** Sets the balance to what the plan gives in a month: what was left over goes. Where credits are not limited the balance stays. */
export async function refill(tx: Tx, account: Account, reason: 'month_began' | 'plan_changed'): Promise<Account> {
  const credits = creditsOf(account.name);
  const month = monthOf(tx.now);
  await tx.all(sql`
    update recruitment.plan set credit_month = ${month}::date where organization_id = ${tx.organization_id}`);
  const current = { ...account, credit_month: month };
  const amount = (credits ?? current.credit_balance) - current.credit_balance;
  if (amount === 0) return current;
  return write(tx, current, { kind: amount > 0 ? 'grant' : 'adjust', amount, reason });
}

/** The account with the credits of this month. */
export async function currentAccount(tx: Tx): Promise<Account> {
  const account = await lockAccount(tx);
  return account.credit_month === monthOf(tx.now) ? account : refill(tx, account, 'month_began');
}

/** Takes a credit, in the transaction that creates the work. @throws Problem no_credits */
export async function spendCredit(tx: Tx, reason: Work, about: About): Promise<void> {
  const account = await currentAccount(tx);
  if (creditsOf(account.name) !== null && account.credit_balance < 1) {
    throw new Problem(
      'no_credits',
      'No credits are left this month. Wait for the next month, or ask the operator of the service for another plan.',
    );
  }
  await write(tx, account, { kind: 'spend', amount: -1, reason, ...about });
}

/** Gives the credit back, in the transaction that fails the work. */
export async function refundCredit(tx: Tx, reason: Work, about: About): Promise<void> {
  await write(tx, await currentAccount(tx), { kind: 'refund', amount: 1, reason, ...about });
}
