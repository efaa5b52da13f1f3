import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { Problem } from '../../../core/values/problem.ts';
import type { PayoutBatch } from '../payout_batch.ts';

/** A payout method of partners with payouts to send in a batch, and whether the program can pay by it. */
interface Method {
  method: string;
  has_credentials: boolean;
}

/**
 * A batch of which nothing can be sent for lack of credentials is refused while a person is there to read it. Where some of its payouts can be
 * sent, the others are counted in `not_sent`.
 * @param which of its payouts, called `t`
 * @throws Problem payout_locked
 */
export async function refuseWithoutCredentials(tx: Tx, { id, program_id }: PayoutBatch, which: Sql): Promise<void> {
  const methods = await tx.all<Method>(sql`
    select m.method, m.method = 'crypto' or exists (
      select from program.rail r
      where r.organization_id = ${tx.organization_id} and r.program_id = ${program_id} and r.rail = m.method and r.deleted_at is null
    ) as has_credentials
    from (
      select distinct m.method
      from program.payout t
      join program.payout_method m on m.organization_id = t.organization_id and m.partner_id = t.partner_id
      where ${tenant(tx)} and t.batch_id = ${id} and ${which} and t.deleted_at is null
    ) as m
    order by m.method`);
  if (methods.length === 0 || methods.some(({ has_credentials }) => has_credentials)) return;
  const names = methods.map(({ method }) => method).join(', ');
  throw new Problem(
    'payout_locked',
    `Nothing of the batch can be sent (no_credentials): the program has no credentials for ${names}. Set them with PUT /v1/programs/${program_id}/rails/{rail}, then request it again.`,
  );
}
