import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import type { Services } from '../../../core/resource/services.ts';
import { queueMail } from '../../../mail/outgoing.ts';
import { type Addressee, addressee, addressees, composed, type MailAbout } from './partner_mail.ts';

/** The referrals of a day that are told as they come; further ones are told once it is over. */
const most_a_day = 10;
/** Customers of longer ago are no news: after a worker stood still, or of a database that knew no such mails. */
const news_ms = 2 * 86_400_000;

/** The organizations in which a partner is to be told of referrals. Reads across tenants: for the scheduled task alone. */
export const organizationsToMail = (tx: Tx, at: string): Promise<{ organization_id: string }[]> =>
  tx.all(sql`select distinct o.id as organization_id from program.organizations_to_mail(${dayOf(at)}::date) as o (id)`);

const dayOf = (at: string): string => at.slice(0, 10);

/** A partner with new customers since the last run, and with the last day on which there were some. */
type Referrer = Addressee & {
  email_first_referral: boolean;
  email_new_referral: boolean;
  /** False: only what waits is forgotten. */
  is_told: boolean;
  customers: number;
  is_first: boolean;
  day: string | null;
  told: number;
  waiting: number;
};

/**
 * Tells partners of their new customers, in the service's own transaction: what is told, and that it is, commit together, so that no customer is
 * told of twice or forgotten. What a partner has switched off is not made up for later.
 */
export async function mailReferrals(
  tx: Tx,
  services: Pick<Services, 'base_url'>,
  organization_id: string,
): Promise<void> {
  const today = dayOf(tx.now);
  // One job at a time: another one would find the same days over.
  await tx.all(
    sql`select 1 from program.fold f where f.organization_id = ${organization_id} and f.sums = 'mails' for update`,
  );
  for (const referrer of await referrersOf(tx, organization_id, today)) {
    const { next, abouts } = toTell(referrer, today);
    for (const about of abouts)
      await queueMail(tx, { organization_id, recipient: referrer.recipient, ...composed(referrer, about, services) });
    tx.send(sql`
      insert into program.referral_mail (organization_id, partner_id, day, told, waiting)
      values (${organization_id}, ${referrer.id}, ${today}::date, ${next.told}, ${next.waiting})
      on conflict (organization_id, partner_id) do update set day = excluded.day, told = excluded.told, waiting = excluded.waiting`);
  }
}

async function referrersOf(tx: Tx, organization_id: string, today: string): Promise<Referrer[]> {
  const since = new Date(Date.parse(tx.now) - news_ms).toISOString();
  return tx.all<Referrer>(sql`
    with found as materialized (
      select n.partner_id, n.customers, n.is_first
      from program.take_new_customers(
        ${organization_id}, greatest(${since}::timestamptz, coalesce((select h.restored_at from core.hold() h), '-infinity'))
      ) n
    ),
    over as (
      select m.partner_id from program.referral_mail m
      where m.organization_id = ${organization_id} and m.waiting > 0 and m.day < ${today}::date
    )
    select ${addressee}, p.email_first_referral, p.email_new_referral, g.partner_emails and p.status = 'active' as is_told,
      coalesce(n.customers, 0)::int as customers, coalesce(n.is_first, false) as is_first,
      m.day::text as day, coalesce(m.told, 0) as told, coalesce(m.waiting, 0) as waiting
    from (select partner_id from found union select partner_id from over) as w
    join (${addressees}) on p.organization_id = ${organization_id} and p.id = w.partner_id
    left join found n on n.partner_id = p.id
    left join program.referral_mail m on m.organization_id = p.organization_id and m.partner_id = p.id
    order by p.id`);
}

interface Telling {
  abouts: MailAbout[];
  /** The counts of today that are kept. */
  next: { told: number; waiting: number };
}

/** Decides what a partner is told now, as a pure function. @param today UTC: `2026-11-29` */
export function toTell(
  {
    customers,
    is_first,
    day,
    told,
    waiting,
    ...wishes
  }: Pick<
    Referrer,
    'customers' | 'is_first' | 'day' | 'told' | 'waiting' | 'is_told' | 'email_first_referral' | 'email_new_referral'
  >,
  today: string,
): Telling {
  if (!wishes.is_told) return { abouts: [], next: { told: 0, waiting: 0 } };
  const is_over = day !== null && day < today;
  const digest: MailAbout[] =
    is_over && waiting > 0 && wishes.email_new_referral ? [{ kind: 'more_referrals', count: waiting, day }] : [];
  const before = is_over || day === null ? { told: 0, waiting: 0 } : { told, waiting };
  const tells_first = is_first && customers > 0 && wishes.email_first_referral;
  const first: MailAbout[] = tells_first ? [{ kind: 'first_referral' }] : [];
  const others = wishes.email_new_referral ? customers - first.length : 0;
  const now = Math.max(0, Math.min(others, most_a_day - before.told - first.length));
  const news: MailAbout[] = now > 0 ? [{ kind: 'new_referrals', count: now }] : [];
  return {
    abouts: [...digest, ...first, ...news],
    next: { told: before.told + first.length + now, waiting: before.waiting + others - now },
  };
}
