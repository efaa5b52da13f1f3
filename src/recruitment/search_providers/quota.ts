/** Daily quotas of providers: units are taken before a page is asked for. */
import sql from 'sql-template-tag';
import { service_opening } from '../../core/jobs/task.ts';
import { type Store, transaction } from '../../core/postgres/transaction.ts';
import type { Credentials, ProviderName } from './provider.ts';
import { keyHash } from './provider_access.ts';

const default_daily_quota = 10_000;

/** The day of Google's quotas, which "reset at midnight Pacific Time (PT)". */
export const pacificDay = (now: Date): string =>
  new Intl.DateTimeFormat('en-CA', { timeZone: 'America/Los_Angeles', dateStyle: 'short' }).format(now);

/** By a transaction of the service: a key's quota is shared by all who have the key. @returns false where too little is left */
export async function takeUnits(
  store: Store,
  name: ProviderName,
  credentials: Credentials,
  units: number,
): Promise<boolean> {
  const limit = Number(credentials.daily_quota ?? default_daily_quota);
  const hash = keyHash(name, credentials);
  return transaction(store, service_opening, async (tx) => {
    const day = pacificDay(new Date(tx.now));
    await tx.all(sql`
      insert into recruitment.provider_quota (key_hash, day, used) values (${hash}, ${day}::date, 0) on conflict do nothing`);
    const taken = await tx.maybe(sql`
      update recruitment.provider_quota t
      set used = t.used + ${units}
      where t.key_hash = ${hash} and t.day = ${day}::date and t.used + ${units} <= ${limit}::bigint
      returning t.used`);
    return taken !== undefined;
  });
}

/** What the provider itself says: nothing is left of the key's quota today, because something else uses the key too. */
export async function markUsedUp(store: Store, name: ProviderName, credentials: Credentials): Promise<void> {
  const limit = Number(credentials.daily_quota ?? default_daily_quota);
  await transaction(store, service_opening, (tx) =>
    tx.all(sql`
      insert into recruitment.provider_quota as t (key_hash, day, used)
      values (${keyHash(name, credentials)}, ${pacificDay(new Date(tx.now))}::date, ${limit}::bigint)
      on conflict (key_hash, day) do update set used = greatest(t.used, excluded.used)`),
  );
}
