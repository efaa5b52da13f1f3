import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';

export const triggers = ['first', 'weekly', 'search', 'manual'] as const;
export type Trigger = (typeof triggers)[number];
export const search_types = ['keyword', 'competitor', 'lookalike', 'channel', 'url_list'] as const;
export type SearchType = (typeof search_types)[number];

export type ScanError =
  | 'No search provider answered.'
  | 'The website could not be reached.'
  | 'The website forbids visits.'
  | 'The website cannot be read.'
  | 'Interrupted too often.';

/** A search or a scan, as its tasks need it. */
export interface Run {
  id: string;
  kind: 'search' | 'scan';
  brand_id: string;
  search_type: SearchType | null;
  trigger: Trigger | null;
  search_id: string | null;
  state: 'queued' | 'running' | 'done' | 'stopped_at_ceiling' | 'cancelled' | 'failed';
  ceiling_minor: number | null;
  spent_micros: number;
  pages: number;
  results: number;
  found: number;
  visits: number;
  visits_left: number;
  credit: 'none' | 'taken' | 'refunded';
  interruptions: number;
  claim: string | null;
}

export const isOpen = ({ state }: Pick<Run, 'state'>): boolean => state === 'queued' || state === 'running';

const columns: Sql = sql`
  t.id, t.kind, t.brand_id, t.search_type, t.trigger, t.search_id, t.state, t.ceiling_minor, t.spent_micros, t.pages, t.results, t.found,
  t.visits, t.visits_left, t.credit, t.interruptions, t.claim`;

/** The run, which nobody else changes until the transaction ends. Undefined: its organization deleted it. */
export const lockRun = (tx: Tx, id: string): Promise<Run | undefined> =>
  tx.maybe<Run>(sql`
    select ${columns}
    from recruitment.run t
    where t.organization_id = ${tx.organization_id} and t.id = ${id}
    for no key update of t`);

export const updateRun = (tx: Tx, id: string, settings: Sql): Promise<object[]> =>
  tx.all(sql`
    update recruitment.run t
    set ${settings}, updated_at = ${tx.now}::timestamptz
    where t.organization_id = ${tx.organization_id} and t.id = ${id}`);
