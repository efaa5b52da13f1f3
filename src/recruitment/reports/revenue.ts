/** Reads the revenue of partners from activated deals, from the affiliate program. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Interval, revenueOf } from '../../program/activation.ts';
import type { Revenue } from './metric.ts';

export interface RevenueRow {
  member_id: string | null;
  /** Null where no interval was asked for. */
  period: string | null;
  currency: string;
  revenue_minor: number;
  commissions_minor: number;
}

interface Asked {
  brand_id: string;
  campaign_id?: string | undefined;
  inbox_id?: string | undefined;
  member_id?: string | undefined;
  from: string;
  to: string;
  timezone: string;
  interval: Interval | null;
}

/** A row for each partner, currency and period. A partner counts once, from the first activation on, for the assignee of its prospect. */
export async function readRevenue(tx: Tx, asked: Asked): Promise<RevenueRow[]> {
  const { brand_id, member_id, campaign_id, inbox_id } = asked;
  // A sale is of no campaign.
  if (campaign_id !== undefined || inbox_id !== undefined) return [];
  const activated = await tx.all<{ partner_id: string; since: string; member_id: string | null }>(sql`
    select distinct on (d.partner_id) d.partner_id, d.activated_at as since, p.assignee_member_id as member_id
    from recruitment.deal d
    join recruitment.prospect p on p.organization_id = d.organization_id and p.id = d.prospect_id
    where d.organization_id = ${tx.organization_id} and d.brand_id = ${brand_id} and d.partner_id is not null
    order by d.partner_id, d.activated_at`);
  const partners = activated.filter((partner) => member_id === undefined || partner.member_id === member_id);
  const members = new Map(partners.map((partner) => [partner.partner_id, partner.member_id]));
  const rows = await revenueOf(tx, partners, asked);
  return rows.map(({ partner_id, ...row }) => ({ ...row, member_id: members.get(partner_id) ?? null }));
}

/** Added up by currency. */
export function sumOf(rows: RevenueRow[]): Revenue {
  const sums = new Map<string, Revenue[number]>();
  for (const { currency, revenue_minor, commissions_minor } of rows) {
    const sum = sums.get(currency) ?? { currency, revenue_minor: 0, commissions_minor: 0 };
    sums.set(currency, {
      currency,
      revenue_minor: safeSum(sum.revenue_minor, revenue_minor),
      commissions_minor: safeSum(sum.commissions_minor, commissions_minor),
    });
  }
  return [...sums.values()].sort((one, other) => (one.currency < other.currency ? -1 : 1));
}

/** Limited to the integers that JSON carries exactly. */
const safeSum = (one: number, other: number): number =>
  Math.max(Math.min(one + other, Number.MAX_SAFE_INTEGER), Number.MIN_SAFE_INTEGER);
