import sql, { empty, type Sql } from 'sql-template-tag';
import { type Tx, together } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { allows } from '../../core/resource/states.ts';
import { partner_states } from '../partners/partner.ts';
import { assessLater } from '../programs/assess_later.ts';
import { type Program, programs } from '../programs/program.ts';
import { type ClickRow, type Credits, creditsOf, type Visitor } from './credits.ts';
import { type Referral, referral_states } from './referral.ts';

const day_ms = 86_400_000;

export type Credit = 'create' | 'renew' | 'move' | 'keep';

/**
 * The effect of a click on the visitor's live referral: while the referral is a `visit`, a click through another partner moves the
 * credit under `last_click` and changes nothing under `first_click`. Once it has a customer, it stays. An expired referral is not kept.
 */
export function creditOf(
  live: Pick<Referral, 'partner_id' | 'status' | 'expires_at'> | undefined,
  click: { partner_id: string; created_at: string },
  attribution: Program['attribution'],
): Credit {
  if (!live) return 'create';
  if (!allows(referral_states, live.status, 'release')) return 'keep';
  if (live.partner_id === click.partner_id) return 'renew';
  return attribution === 'last_click' || live.expires_at <= click.created_at ? 'move' : 'keep';
}

/**
 * "A click from one of the program's `blocked_countries`, from a known robot, or through a suspended partner … makes no referral", nor does
 * one that was made while the program was paused.
 */
export const earnsCredit = (
  click: Pick<ClickRow, 'country' | 'is_bot' | 'made_while_paused' | 'partner_status'>,
  blocked_countries: string[],
): boolean =>
  !click.made_while_paused &&
  click.partner_status !== null &&
  allows(partner_states, click.partner_status, 'earn') &&
  !(click.country && blocked_countries.includes(click.country)) &&
  !click.is_bot;

/** The end of a click's attribution window: `cookie_days` of the program after the click. */
export const windowEnd = (clicked_at: string, cookie_days: number): string =>
  new Date(Date.parse(clicked_at) + cookie_days * day_ms).toISOString();

/**
 * Attributes what waits of an organization, some clicks at a time: whole visitors, but for the last of them. The rows are locked, so that a
 * request that refers to one of these visitors meanwhile waits, and this waits for such requests.
 * @returns the clicks
 */
export async function attributeWaiting(tx: Tx, most: number): Promise<ClickRow[]> {
  // Planning a read of the weekly partitions takes milliseconds: this plan is the same for each job.
  tx.send(sql`select set_config('plan_cache_mode', 'force_generic_plan', true)`);
  const waiting = waitingClicks(tx, sql`true`, null, sql`limit ${most}`);
  tx.send(sql`select set_config('plan_cache_mode', 'auto', true)`);
  const clicks = await waiting;
  if (clicks.length === 0) return [];
  const program_ids = [...new Set(clicks.map(({ program_id }) => program_id))];
  const [found, credits] = await Promise.all([programs.byIds(tx, program_ids), creditsOf(tx, clicks)]);
  const by_id = new Map((found as unknown as Program[]).map((program) => [program.id, program]));
  attribute(tx, clicks, by_id, credits);
  return clicks;
}

/** The clicks of visitors that wait to be attributed, and their live referrals. */
export interface Waiting {
  clicks: ClickRow[];
  credits: Credits;
}

/**
 * Reads what waits of a visitor, for a request. No other transaction attributes one of their clicks until this one ends: their live referral is
 * locked.
 * @param click_id a click of the visitor that may be older than any job is late
 */
export async function waitingOf(tx: Tx, visitor: Visitor, click_id: string | null = null): Promise<Waiting> {
  const { program_id, visitor_token } = visitor;
  const of_visitor = sql`t.program_id = ${program_id} and t.visitor_token = ${visitor_token}`;
  const [clicks, credits] = await together([waitingClicks(tx, of_visitor, click_id), creditsOf(tx, [visitor])]);
  return { clicks, credits };
}

/** The same of the visitors of clicks. */
export async function waitingOfAll(tx: Tx, visitors: ClickRow[]): Promise<Waiting> {
  const of_visitors = sql`(t.program_id, t.visitor_token) in (
    select v.program_id, v.visitor_token
    from unnest(${visitors.map(({ program_id }) => program_id)}::text[], ${visitors.map(({ visitor_token }) => visitor_token)}::text[])
      as v (program_id, visitor_token))`;
  const first = visitors.map(({ id }) => id).sort()[0] as string;
  const [clicks, credits] = await together([waitingClicks(tx, of_visitors, first), creditsOf(tx, visitors)]);
  return { clicks, credits };
}

/** Attributes what waits of visitors, for a request. A job checks these clicks for fraud. */
export function attributeVisitors(tx: Tx, programs: Map<string, Program>, { clicks, credits }: Waiting): void {
  attribute(tx, clicks, programs, credits);
  for (const { id } of clicks) assessLater(tx, 'click', id);
}

/** Finds a click that a request refers to. */
export const findClick = (tx: Tx, program_id: string, click_id: string): Promise<ClickRow | undefined> =>
  tx.maybe<ClickRow>(sql`
    select ${click_columns} from program.click t where ${tenant(tx)} and t.program_id = ${program_id} and t.id = ${click_id}`);

/**
 * The referral of a click that a request refers to, once what waits of its visitor is attributed. If the live referral is a visit that has expired by
 * then, the credit moves to this click, provided that the click earns credit.
 * @param at when what the click led to happened
 * @returns the visitor's live referral, which may belong to another partner; undefined where there is none
 */
export function referralOfClick(
  tx: Tx,
  program: Program,
  click: ClickRow,
  waiting: Waiting,
  at: string,
): Referral | undefined {
  attributeVisitors(tx, new Map([[program.id, program]]), waiting);
  const { credits } = waiting;
  const live = credits.seenBy(click);
  if (!live || !takesCredit(click, live, program, at)) return live;
  const referral = credits.move(click, windowEnd(click.created_at, program.cookie_days));
  write(tx, credits, new Map([[click.id, referral.id]]));
  return referral;
}

/** Returns whether a live referral has expired at a time, and a click through another partner takes its credit. */
export const takesCredit = (
  click: ClickRow,
  live: Referral,
  { cookie_days, blocked_countries }: Program,
  at: string,
): boolean =>
  windowEnd(click.created_at, cookie_days) > at &&
  earnsCredit(click, blocked_countries) &&
  allows(referral_states, live.status, 'release') &&
  live.expires_at <= at &&
  live.partner_id !== click.partner_id;

/** The columns of a `ClickRow`. */
export const click_columns = sql`t.id, t.program_id, t.partner_id, t.link_id, t.visitor_token, t.landing_url, t.user_agent, t.ip_hash, t.country, t.is_bot, t.made_while_paused,
  t.request_id, t.created_at,
  (select p.status from program.partner p
    where p.organization_id = t.organization_id and p.id = t.partner_id and p.deleted_at is null) as partner_status`;

/** The longest that a job can be late: only the click's partitions since then, and since the click itself, are searched. */
const max_delay = '30 days';

/** Clicks that nobody has attributed, visitor by visitor, each in the order in which they were made: locked, once nobody else has them locked. */
const waitingClicks = (tx: Tx, which: Sql, click_id: string | null, limit = empty): Promise<ClickRow[]> =>
  tx.all(sql`
    select ${click_columns}
    from program.click t
    where ${tenant(tx)} and ${which} and t.attributed_at is null
      and t.id >= least(${click_id}::text collate "C", 'clk_' || core.id_time_part(${tx.now}::timestamptz - ${max_delay}::interval))
      and t.id < 'clk_' || core.id_time_part(${tx.now}::timestamptz + interval '1 day')
    order by t.program_id, t.visitor_token, t.created_at, t.id
    ${limit}
    for no key update of t`);

/** Attributes clicks in the order in which they were made, whoever made them. Those of a program that is gone earn no credit. */
function attribute(tx: Tx, clicks: ClickRow[], by_id: Map<string, Program>, credits: Credits): void {
  if (clicks.length === 0) return;
  const credited = new Map<string, string | null>();
  for (const click of clicks.toSorted(byTime)) {
    const program = by_id.get(click.program_id);
    const earns = program !== undefined && earnsCredit(click, program.blocked_countries);
    const referral = earns ? credit(credits, click, program) : undefined;
    credited.set(click.id, referral?.partner_id === click.partner_id ? referral.id : null);
  }
  write(tx, credits, credited);
}

const byTime = (a: ClickRow, b: ClickRow): number =>
  a.created_at === b.created_at ? (a.id < b.id ? -1 : 1) : a.created_at < b.created_at ? -1 : 1;

/** Applies a click that earns credit. @returns the visitor's live referral, which may belong to another partner */
function credit(credits: Credits, click: ClickRow, program: Program): Referral {
  const live = credits.seenBy(click);
  const effect = creditOf(live, click, program.attribution);
  const expires_at = windowEnd(click.created_at, program.cookie_days);
  if (live && effect === 'renew') credits.renew(click, expires_at);
  if (live && effect !== 'move') return live;
  return live ? credits.move(click, expires_at) : credits.create(click, expires_at);
}

/** @param credited clicks, by their ids, and the referral that each is credited to */
function write(tx: Tx, credits: Credits, credited: Map<string, string | null>): void {
  credits.write();
  const ids = [...credited.keys()].sort();
  tx.send(sql`
    update program.click t
    set referral_id = c.referral_id, attributed_at = ${tx.now}::timestamptz
    from unnest(${ids}::text[], ${ids.map((id) => credited.get(id))}::text[]) as c (id, referral_id)
    where ${tenant(tx)} and t.id = c.id and t.id between ${ids[0]} and ${ids.at(-1)}`);
}
