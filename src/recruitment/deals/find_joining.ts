/** Finds the programs with new events. Kept apart from processing them, so that a worker that finds none does not load that code. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';

/** "`affiliate.created` and `affiliate.confirmed` of the linked program" */
export const types = ['affiliate.created', 'affiliate.confirmed'];

export interface FollowedProgram {
  organization_id: string;
  program_id: string;
}

/** The programs that an invited prospect is to join and whose events have gone on: nothing where nobody is invited. */
export const programsToFollow = (tx: Tx): Promise<FollowedProgram[]> =>
  tx.all<FollowedProgram>(sql`
    select distinct b.organization_id, b.program_id
    from recruitment.brand b
    where b.program_id is not null and b.deleted_at is null
      and exists (
        select from recruitment.prospect p
        where p.organization_id = b.organization_id and p.brand_id = b.id and p.invited_at is not null and p.signed_up_at is null
      )
      and exists (
        select from webhooks.event e
        where e.organization_id = b.organization_id and e.program_id = b.program_id and e.type = any(${types})
          and e.position > coalesce(
            (
              select c.position from recruitment.joining_cursor c
              where c.organization_id = b.organization_id and c.program_id = b.program_id
            ),
            0
          )
      )`);
