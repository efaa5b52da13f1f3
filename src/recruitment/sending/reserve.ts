/** What limits count: an email is counted when it is claimed, and given back when it turns out that it was not sent. */
import sql, { type Sql } from 'sql-template-tag';
import { LostRace } from '../../core/postgres/errors.ts';
import type { Tx } from '../../core/postgres/transaction.ts';

/** What an email counts towards. */
export interface Counted {
  inbox_id: string;
  /** Of the inbox. */
  day: string;
  /** Null: an email outside of campaigns. */
  campaign: {
    campaign_id: string;
    /** Of the campaign. */
    day: string;
    is_first: boolean;
    daily_new_limit: number | null;
    /** In hexadecimal. Null: of no company. */
    company: string | null;
    max_per_domain_day: number;
    /** What the plan allows in a day (UTC). */
    daily_sends: number | null;
  } | null;
}

/**
 * Counts emails. Each statement waits for others that count the same, and counts nothing over a limit.
 * @throws LostRace where others have reached a limit since it was read: the transaction is run again, and finds it reached
 */
export async function reserve(tx: Tx, emails: Counted[]): Promise<void> {
  const inboxes = summed(emails, ({ inbox_id, day }) => ({ inbox_id, day }));
  const of_campaigns = emails.flatMap(({ campaign }) => (campaign ? [campaign] : []));
  const firsts = summed(
    of_campaigns.filter(({ is_first }) => is_first),
    ({ campaign_id, day, daily_new_limit }) => ({ campaign_id, day, most: daily_new_limit }),
  );
  const companies = summed(
    of_campaigns.filter(({ company }) => company !== null),
    ({ campaign_id, day, company, max_per_domain_day }) => ({ campaign_id, day, company, most: max_per_domain_day }),
  );
  const [daily_sends] = of_campaigns.flatMap(({ daily_sends: most }) => (most === null ? [] : [most]));
  const counted = await Promise.all([
    inboxes.length === 0 ? [] : tx.all(inboxDays(tx, inboxes)),
    firsts.length === 0 ? [] : tx.all(campaignDays(tx, firsts)),
    companies.length === 0 ? [] : tx.all(companyDays(tx, companies)),
    daily_sends === undefined ? [undefined] : tx.all(organizationDay(tx, of_campaigns.length, daily_sends)),
  ]);
  const wanted = [inboxes.length, firsts.length, companies.length, 1];
  if (counted.some((rows, nth) => rows.length < (wanted[nth] as number)))
    throw new LostRace('A limit was reached by another worker.');
}

const inboxDays = (tx: Tx, rows: object[]): Sql => sql`
  insert into recruitment.inbox_day as d (organization_id, inbox_id, day, sent)
  select ${tx.organization_id}, g.inbox_id, g.day, g.count
  from ${given(rows, sql`inbox_id text, day date, count integer`)}
  order by g.inbox_id
  on conflict (organization_id, inbox_id, day) do update set sent = d.sent + excluded.sent
  returning 1`;

/** The limit is in the source again, since an excluded row has no more than the table's columns. */
const campaignDays = (tx: Tx, rows: object[]): Sql => sql`
  with g as materialized (
    select * from ${given(rows, sql`campaign_id text, day date, most integer, count integer`)}
    where g.most is null or g.count <= g.most
    order by g.campaign_id
  )
  insert into recruitment.campaign_day as d (organization_id, campaign_id, day, begun)
  select ${tx.organization_id}, g.campaign_id, g.day, g.count from g
  on conflict (organization_id, campaign_id, day) do update set begun = d.begun + excluded.begun
  where not exists (
    select from g
    where g.campaign_id = d.campaign_id and g.day = d.day and d.begun + excluded.begun > g.most
  )
  returning 1`;

const companyDays = (tx: Tx, rows: object[]): Sql => sql`
  with g as materialized (
    select * from ${given(rows, sql`campaign_id text, day date, company text, most integer, count integer`)}
    where g.count <= g.most
    order by g.campaign_id, g.company
  )
  insert into recruitment.company_day as d (organization_id, campaign_id, day, company_hmac, sent)
  select ${tx.organization_id}, g.campaign_id, g.day, decode(g.company, 'hex'), g.count from g
  on conflict (organization_id, campaign_id, day, company_hmac) do update set sent = d.sent + excluded.sent
  where not exists (
    select from g
    where g.campaign_id = d.campaign_id and g.day = d.day and decode(g.company, 'hex') = d.company_hmac and d.sent + excluded.sent > g.most
  )
  returning 1`;

const organizationDay = (tx: Tx, count: number, most: number): Sql => sql`
  insert into recruitment.organization_day as d (organization_id, day, sent)
  select ${tx.organization_id}, (${tx.now}::timestamptz at time zone 'UTC')::date, ${count}
  where ${count}::integer <= ${most}::integer
  on conflict (organization_id, day) do update set sent = d.sent + excluded.sent
  where d.sent + excluded.sent <= ${most}
  returning 1`;

const given = (rows: object[], columns: Sql): Sql =>
  sql`json_to_recordset(${JSON.stringify(rows)}::json) as g (${columns})`;

/** One row for each key, with how many there are. */
function summed<Item, Key extends object>(items: Item[], keyOf: (item: Item) => Key): (Key & { count: number })[] {
  const sums = new Map<string, Key & { count: number }>();
  for (const item of items) {
    const key = keyOf(item);
    const name = JSON.stringify(key);
    const sum = sums.get(name);
    if (sum) sum.count++;
    else sums.set(name, { ...key, count: 1 });
  }
  return [...sums.values()];
}

/**
 * Gives back what messages count towards, and takes the days off them: they were not sent. The caller holds their rows, and has not yet
 * changed what they are counted on.
 */
export async function giveBack(tx: Tx, message_ids: string[]): Promise<void> {
  if (message_ids.length === 0) return;
  const messages = sql`recruitment.message m where m.organization_id = ${tx.organization_id} and m.id = any(${message_ids})`;
  await Promise.all([
    tx.all(sql`
      update recruitment.inbox_day d set sent = d.sent - g.count
      from (select m.inbox_id, m.counted_on as day, count(*)::integer as count from ${messages} and m.counted_on is not null group by 1, 2 order by 1, 2) as g
      where d.organization_id = ${tx.organization_id} and d.inbox_id = g.inbox_id and d.day = g.day`),
    tx.all(sql`
      update recruitment.campaign_day d set begun = d.begun - g.count
      from (
        select m.campaign_id, m.campaign_counted_on as day, count(*)::integer as count from ${messages} and m.campaign_counted_on is not null
          and m.step_index = 0
        group by 1, 2 order by 1, 2
      ) as g
      where d.organization_id = ${tx.organization_id} and d.campaign_id = g.campaign_id and d.day = g.day`),
    tx.all(sql`
      update recruitment.company_day d set sent = d.sent - g.count
      from (
        select s.campaign_id, m.campaign_counted_on as day, s.company_hmac, count(*)::integer as count
        from recruitment.message m
        join recruitment.sequence s on s.organization_id = m.organization_id and s.id = m.sequence_id
        where m.organization_id = ${tx.organization_id} and m.id = any(${message_ids}) and m.campaign_counted_on is not null
          and s.company_hmac is not null
        group by 1, 2, 3 order by 1, 2, 3
      ) as g
      where d.organization_id = ${tx.organization_id} and d.campaign_id = g.campaign_id and d.day = g.day and d.company_hmac = g.company_hmac`),
    tx.all(sql`
      update recruitment.organization_day d set sent = d.sent - g.count
      from (
        select m.organization_counted_on as day, count(*)::integer as count from ${messages} and m.organization_counted_on is not null group by 1
      ) as g
      where d.organization_id = ${tx.organization_id} and d.day = g.day`),
    tx.all(sql`
      update recruitment.message m set counted_on = null, campaign_counted_on = null, organization_counted_on = null
      where m.organization_id = ${tx.organization_id} and m.id = any(${message_ids})`),
  ]);
}
