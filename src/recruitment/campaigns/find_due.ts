/** What the scheduled task looks for, apart from what is done about it: a worker that finds nothing does not load that. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { is_over_limit } from './bounce_limit.ts';
import { is_over } from './finish.ts';

/** What is to be done with a campaign: it starts, or what no request has done for it is made up for. */
export interface Due {
  organization_id: string;
  campaign_id: string;
  is_start: boolean;
}

const connected = sql`exists (
  select from recruitment.inbox i
  where i.organization_id = t.organization_id and i.id = any(t.inbox_ids) and i.status = 'connected' and i.deleted_at is null)`;

/** The campaigns of all organizations for which something is to be done. */
export const campaignsDue = (tx: Tx, tick: string): Promise<Due[]> =>
  tx.all<Due>(sql`
    select t.organization_id, t.id as campaign_id, true as is_start from recruitment.campaign t
    where t.state = 'scheduled' and t.start_at <= ${tick}::timestamptz
    union all
    select t.organization_id, t.id, false from recruitment.campaign t
    where t.state = 'sending' and (t.is_unscheduling or ${is_over} or not ${connected} or ${is_over_limit} or exists (
      select from recruitment.sequence s
      where s.organization_id = t.organization_id and s.campaign_id = t.id and s.open and s.due_at is null))`);
