/**
 * Finds who keeps personal data, imports and what searches found for too long, which `purge.ts` deletes. Deletes itself only what a restore left
 * (`sent_before`), of all organizations. Loaded by each worker.
 */
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';
import type { Retention } from '../core/resource/services.ts';
import { databaseTime } from '../core/values/clock.ts';
import { idTimePart } from '../core/values/id.ts';

/** "Revealed addresses that were not used go after 30 days (GDPR, article 14)." */
export const unused_address_days = 30;

/** The limit of the API: a larger one would lead to before the beginning of time. */
const most_retention_days = 3650;

/** Returns the first id that is kept: ids sort by the time they were made. */
export const firstKept = (prefix: string, days: number, at: string): string =>
  `${prefix}_${idTimePart(Math.min(Date.parse(at), databaseTime()) - days * 86_400_000)}`;

/** The organizations that keep something for too long. @param at as of when, ISO 8601: not later than now by Postgres' clock */
export const organizationsToPurge = (
  tx: Tx,
  { import_days, search_days }: Retention,
  at: string,
): Promise<{ organization_id: string }[]> =>
  tx.all<{ organization_id: string }>(sql`
    select b.organization_id
    from recruitment.brand b
    where exists (
      select from recruitment.prospect t
      where t.organization_id = b.organization_id and t.brand_id = b.id and (b.deleted_at is not null or ${expired(at)})
    )
    union
    select a.organization_id
    from recruitment.email_address a
    where a.used_at is null and a.source <> 'manual' and a.found_at < least(${at}::timestamptz, now()) - make_interval(days => ${unused_address_days})
    union
    select o.id
    from core.organization o
    where exists (select from recruitment.import t where t.organization_id = o.id and ${endedImport(import_days, at)})
      or exists (select from recruitment.run_result t where t.organization_id = o.id and t.id < ${firstKept('fsr', search_days, at)})
      or exists (select from recruitment.visit t where t.organization_id = o.id and t.run_id < ${firstKept('fsc', search_days, at)})
      or exists (select from recruitment.run_page t where t.organization_id = o.id and t.price_micros = 0 and t.run_id < ${firstKept('fsc', search_days, at)})
      or exists (select from recruitment.page t where t.organization_id = o.id and ${fetchedBefore(search_days, at)})`);

/** It was fetched for the last time so many days ago. */
export const fetchedBefore = (days: number, at: string): Sql =>
  sql`t.fetched_at < least(${at}::timestamptz, now()) - make_interval(days => ${days})`;

export const endedImport = (days: number, at: string): Sql => sql`
  t.id < ${firstKept('fim', days, at)} and t.finished_at < least(${at}::timestamptz, now()) - make_interval(days => ${days})`;

/** Never written to, not invited and not in talks, for longer than the brand keeps such prospects. */
export const expired = (at: string) => sql`(
  t.stage = 'found' and t.sent = 0
  -- An email whose outcome is not known may have been sent.
  and not exists (
    select from recruitment.message m
    where m.organization_id = t.organization_id and m.prospect_id = t.id and m.direction = 'outbound' and m.state in ('sending', 'unknown')
  )
  and t.invited_at is null and t.signed_up_at is null and t.partner_id is null and t.deal_id is null
  and t.created_at < least(${at}::timestamptz, now()) - make_interval(days => least(b.retention_days, ${most_retention_days})))`;

/** Deletes from `sent_before`, which holds emails that were found in Sent after a restore, those whose turn cannot come again. */
export const forgetSentBefore = (tx: Tx): Promise<object[]> =>
  tx.all(sql`delete from recruitment.sent_before t where t.created_at < now() - interval '180 days'`);
