/** Counts the prospects of a brand by kind: a snapshot, plus the changes since it was taken. */
import sql, { join, type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Totals } from '../../core/resource/list_query.ts';

type Query = Record<string, unknown> & { brand_id?: unknown };

const by_text = {
  ...{ stage: sql`n.stage`, channel: sql`n.channel`, source: sql`n.source` },
  ...{ country_code: sql`n.country_code`, language_code: sql`n.language_code` },
};
const by_flag = {
  ...{ saved: sql`n.saved`, hidden: sql`n.hidden`, has_email: sql`n.has_email`, do_not_contact: sql`n.do_not_contact` },
  ...{ unsubscribed: sql`n.unsubscribed`, invited: sql`n.invited`, signed_up: sql`n.signed_up` },
};

/** For lists whose filters are all tallied. */
export const totals: Totals = {
  by: [...Object.keys(by_text), ...Object.keys(by_flag)],
  read: (tx: Tx, query: Query) => sql`
    select coalesce(sum(n.rows) filter (where ${matching(query)}), 0)::bigint as count, coalesce(sum(n.rows), 0)::bigint as of
    from recruitment.prospect_totals_of(${tx.organization_id}, array[${query.brand_id}]) n`,
};

function matching(query: Query): Sql {
  const texts = Object.entries(by_text).flatMap(([name, column]) =>
    query[name] === undefined ? [] : [sql`${column} = ${query[name]}`],
  );
  const flags = Object.entries(by_flag).flatMap(([name, column]) =>
    query[name] === undefined ? [] : [sql`${column} = ${query[name] === 'true'}`],
  );
  return join([sql`true`, ...texts, ...flags], ' and ');
}

/** Returns the statistics that brands show. */
export async function countProspects(tx: Tx, brands: { id: string }[]): Promise<Map<string, object>> {
  const ids = brands.map(({ id }) => id);
  const counts = await tx.all<{ brand_id: string; counted: object }>(sql`
    select
      b.id as brand_id,
      json_build_object(
        'prospects', coalesce(sum(n.rows), 0),
        'saved', coalesce(sum(n.rows) filter (where n.saved), 0),
        'contacted', coalesce(sum(n.rows) filter (where n.was_sent), 0),
        'interested', coalesce(sum(n.rows) filter (where n.stage in ('interested', 'negotiating', 'agreed')), 0),
        'active', coalesce(sum(n.rows) filter (where n.stage = 'active'), 0)
      ) as counted
    from unnest(${ids}::text[]) as b (id)
    left join recruitment.prospect_totals_of(${tx.organization_id}, ${ids}) n on n.brand_id = b.id
    group by b.id`);
  return new Map(counts.map(({ brand_id, counted }) => [brand_id, counted]));
}

/** Adds up to `limit` pending changes to the tallies, for all tenants: for the scheduled task only. @returns how many were added */
export async function foldProspectTallies(tx: Tx, limit: number): Promise<number> {
  const { folded } = await tx.one<{ folded: number }>(
    sql`select recruitment.fold_prospect_tallies(${limit}) as folded`,
  );
  return folded;
}
