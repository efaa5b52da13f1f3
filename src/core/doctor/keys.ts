/** Checks the API keys of all organizations. */
import sql from 'sql-template-tag';
import { ago, counted, named } from './amounts.ts';
import { check, ok, rowsOf, warning } from './check.ts';

/** Keys that expire within this time are named. */
const soon_days = 14;

interface Expiring {
  /** `key_… (Checkout, org_…)` */
  key: string;
  seconds: number;
}

export const keyChecks = [
  check({
    name: 'access/keys',
    read: rowsOf<Expiring>(sql`
      select format('%s (%s, %s)', k.id, k.name, k.organization_id) as key, extract(epoch from k.expires_at - now())::float8 as seconds
      from core.api_key k
      where k.revoked_at is null and k.expires_at between now() and now() + make_interval(days => ${soon_days})
      order by k.expires_at`),
    assess: (found) =>
      found.length === 0
        ? ok(`No API key expires within ${soon_days} days.`)
        : warning(
            `${counted(found.length, 'API key expires', 'API keys expire')} within ${soon_days} days: ${named(found.map(({ key, seconds }) => `${key} in ${ago(seconds)}`))}.`,
            "Have their holders switch to other keys, or postpone it: 'npx --no rail key update KEY --expires-at TIME'.",
          ),
  }),
];
