/** The check of `rail doctor` on the pages that use publishable keys. */
import sql from 'sql-template-tag';
import { counted, named } from '../../core/doctor/amounts.ts';
import { check, ok, rowsOf, warning } from '../../core/doctor/check.ts';
import type { PublishableKey } from './publishable_key.ts';

/** A key that no page has used for so long says nothing of the pages of today. */
const used_days = 30;

type UsedKey = Pick<PublishableKey, 'id' | 'program_id' | 'allowed_origins' | 'setup'>;

export const snippetChecks = [
  check({
    name: 'program/first_party',
    read: rowsOf<UsedKey>(sql`
      select t.id, t.program_id, t.allowed_origins, t.setup
      from program.publishable_key t
      where t.revoked_at is null and t.setup is not null and t.last_used_at > now() - make_interval(days => ${used_days})
      order by t.id`),
    assess(used) {
      if (used.length === 0) return ok(`No page has used a publishable key in the last ${used_days} days.`);
      const others = used.filter(({ setup }) => setup !== 'first_party');
      if (others.length === 0) return ok(`${counted(used.length, 'publishable key')} in use, each first party.`);
      const texts = others.map(
        ({ id, program_id, allowed_origins, setup }) =>
          `${id} of ${program_id} is ${setup} for ${named(allowed_origins, 3)}`,
      );
      return warning(
        `Not first party: ${named(texts)}. Safari keeps the cookie of such pages for 7 days, or for 24 hours after a decorated link (same_site: unless the address is near that of the website).`,
        'Serve Rail from the host of the pages, below /_rail/, and load /_rail/rail.js there: /docs/snippet has the lines for nginx, Caddy, Cloudflare, Vercel and Netlify.',
      );
    },
  }),
];
