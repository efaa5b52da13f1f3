import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';

interface Load {
  id: string;
  daily_limit: number;
  open: number;
}

/** What the connected inboxes of a campaign have to send: each sequence gets the one with the least to do for its limit. */
export class InboxLoads {
  readonly #loads: Load[];

  constructor(loads: Load[]) {
    this.#loads = loads;
  }

  get isEmpty(): boolean {
    return this.#loads.length === 0;
  }

  /** The inbox for the next sequence. The first of those that have as little to do. */
  next(): string {
    const least = this.#loads.reduce((one, other) => (loadOf(other) < loadOf(one) ? other : one));
    least.open += 1;
    return least.id;
  }
}

const loadOf = ({ open, daily_limit }: Load): number => (open + 1) / daily_limit;

/** @param inbox_ids of a campaign */
export async function loadsOf(tx: Tx, inbox_ids: string[]): Promise<InboxLoads> {
  const loads = await tx.all<Load>(sql`
    select i.id, i.daily_limit, (
      select count(*)::integer from recruitment.sequence s
      where s.organization_id = i.organization_id and s.inbox_id = i.id and s.open and s.due_at is not null
    ) as open
    from recruitment.inbox i
    where i.organization_id = ${tx.organization_id} and i.id = any(${inbox_ids}) and i.status = 'connected' and i.deleted_at is null
    order by i.id`);
  return new InboxLoads(loads);
}
