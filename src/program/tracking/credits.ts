import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insertion } from '../../core/postgres/write.ts';
import { tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import { event } from '../events/event.ts';
import type { Partner } from '../partners/partner.ts';
import { type Referral, referrals } from './referral.ts';

/** A click as it is attributed. */
export interface ClickRow {
  id: string;
  program_id: string;
  partner_id: string;
  link_id: string | null;
  visitor_token: string;
  landing_url: string | null;
  user_agent: string | null;
  ip_hash: string | null;
  country: string | null;
  is_bot: boolean;
  made_while_paused: boolean;
  /** The request that recorded it. */
  request_id: string | null;
  created_at: string;
  /** Null where the partner is deleted. */
  partner_status: Partner['status'] | null;
}

/** A browser, as the site that it visits calls it: unique in a program. */
export type Visitor = Pick<ClickRow, 'program_id' | 'visitor_token'>;

/** A live referral, and when its partner was deleted. */
export interface Live extends Referral {
  partner_deleted_at: string | null;
}

/** Reads and locks the live referrals of visitors, each by the index that says that there is one. */
export async function creditsOf(tx: Tx, visitors: Visitor[]): Promise<Credits> {
  const by_key = new Map(visitors.map((visitor) => [keyOf(visitor), visitor]));
  const sorted = [...by_key.keys()].sort().map((key) => by_key.get(key) as Visitor);
  const live = await tx.all<Live & Visitor>(sql`
    select r.*
    from unnest(${sorted.map(({ program_id }) => program_id)}::text[], ${sorted.map(({ visitor_token }) => visitor_token)}::text[])
      as v (program_id, visitor_token)
    cross join lateral (
      select ${referrals.columns}, t.visitor_token,
        (select p.deleted_at from program.partner p where p.organization_id = t.organization_id and p.id = t.partner_id) as partner_deleted_at
      from program.referral t
      where ${tenant(tx)} and t.program_id = v.program_id and t.visitor_token = v.visitor_token and t.deleted_at is null
      for no key update of t
    ) r`);
  return new Credits(tx, live);
}

const keyOf = ({ program_id, visitor_token }: Visitor): string => `${program_id} ${visitor_token}`;

/** Collects the changes that clicks make to their visitors' live referrals, and writes them together, in a statement each. */
export class Credits {
  readonly #tx: Tx;
  readonly #live: Map<string, Live>;
  readonly #created = new Map<string, object>();
  readonly #renewed = new Map<string, string>();
  readonly #ended = new Set<string>();

  constructor(tx: Tx, live: (Live & Visitor)[]) {
    this.#tx = tx;
    this.#live = new Map(
      live.map(({ visitor_token, ...referral }) => [keyOf({ ...referral, visitor_token }), referral]),
    );
  }

  /** The visitor's live referral. A visit through a partner who was deleted has ended with that for others, also before a job has written so. */
  seenBy(click: ClickRow): Live | undefined {
    const live = this.#live.get(keyOf(click));
    const { partner_deleted_at = null } = live ?? {};
    if (!live || partner_deleted_at === null || live.partner_id === click.partner_id) return live;
    return partner_deleted_at < live.expires_at ? { ...live, expires_at: partner_deleted_at } : live;
  }

  renew(click: ClickRow, expires_at: string): void {
    const live = this.#live.get(keyOf(click)) as Live;
    if (expires_at <= live.expires_at) return;
    live.expires_at = expires_at;
    const created = this.#created.get(live.id);
    if (created) Object.assign(created, { expires_at });
    else this.#renewed.set(live.id, expires_at);
  }

  create(click: ClickRow, expires_at: string): Live {
    const { program_id, partner_id, link_id, landing_url, country, visitor_token, request_id } = click;
    const { now } = this.#tx;
    const shown = { program_id, partner_id, link_id, landing_url, utm: utmOf(landing_url), expires_at };
    const row = {
      id: newId('ref'),
      ...shown,
      tracked_by: 'link' as const,
      status: 'visit' as const,
      created_at: now,
      updated_at: now,
    };
    const referral = { ...row, object: 'referral' as const };
    this.#created.set(row.id, { ...row, country, visitor_token, deleted_at: null, deleted_reason: null });
    const live = { ...referral, partner_deleted_at: null };
    this.#live.set(keyOf(click), live);
    this.#tx.emit({ ...event('referral.created', referral), request_id });
    return live;
  }

  /** Ends the visitor's live referral, whose credit moves to the click. */
  move(click: ClickRow, expires_at: string): Live {
    const ended = this.#live.get(keyOf(click)) as Live;
    const created = this.#created.get(ended.id);
    if (created) Object.assign(created, { deleted_at: this.#tx.now, deleted_reason: reattributed });
    else this.#ended.add(ended.id);
    this.#tx.emit({ ...event('referral.deleted', ended, { reason: reattributed }), request_id: click.request_id });
    return this.create(click, expires_at);
  }

  write(): void {
    const tx = this.#tx;
    const renewed = [...this.#renewed].filter(([id]) => !this.#ended.has(id));
    if (this.#ended.size > 0) {
      tx.send(sql`
        update program.referral t
        set deleted_at = ${tx.now}::timestamptz, deleted_reason = ${reattributed}, updated_at = ${tx.now}::timestamptz
        where ${tenant(tx)} and t.id = any(${[...this.#ended]})`);
    }
    if (renewed.length > 0) tx.send(renewal(tx, renewed));
    if (this.#created.size > 0) tx.send(insertion(tx, 'program.referral', [...this.#created.values()]));
  }
}

const reattributed = 'reattributed';

const renewal = (tx: Tx, renewed: [id: string, expires_at: string][]): Sql => sql`
  update program.referral t
  set expires_at = r.expires_at, updated_at = ${tx.now}::timestamptz
  from unnest(${renewed.map(([id]) => id)}::text[], ${renewed.map(([, at]) => at)}::timestamptz[]) as r (id, expires_at)
  where ${tenant(tx)} and t.id = r.id`;

/** The `utm_*` parameters of a URL, without the prefix. A URL can contain NUL, which JSON in Postgres cannot: it is removed. */
function utmOf(landing_url: string | null): Record<string, string> | null {
  const params = [...(URL.parse(landing_url ?? '')?.searchParams ?? [])]
    .map((pair) => pair.map((part) => part.replaceAll('\0', '')) as [string, string])
    .filter(([name]) => name.startsWith('utm_'));
  return params.length === 0 ? null : Object.fromEntries(params.map(([name, value]) => [name.slice(4), value]));
}
