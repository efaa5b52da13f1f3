import { isbot } from 'isbot';
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { lockOf, tenant } from '../../core/resource/resource.ts';
import { allows } from '../../core/resource/states.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { event } from '../events/event.ts';
import { type Partner, partner_states } from '../partners/partner.ts';
import { type Program, programs } from '../programs/program.ts';
import { deleteReferral, type Referral, referral_states, referrals } from './referral.ts';

const day_ms = 86_400_000;

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
  made_while_paused: boolean;
  created_at: string;
  /** Null where the partner is deleted. */
  partner_status: Partner['status'] | null;
}

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
  click: Pick<ClickRow, 'country' | 'user_agent' | 'made_while_paused' | 'partner_status'>,
  blocked_countries: string[],
): boolean =>
  !click.made_while_paused &&
  click.partner_status !== null &&
  allows(partner_states, click.partner_status, 'earn') &&
  !(click.country && blocked_countries.includes(click.country)) &&
  !isbot(click.user_agent);

/** The end of a click's attribution window: `cookie_days` of the program after the click. */
export const windowEnd = (clicked_at: string, cookie_days: number): string =>
  new Date(Date.parse(clicked_at) + cookie_days * day_ms).toISOString();

/**
 * Attributes a click and the visitor's other pending clicks, in the order in which they were made, so that the order in which jobs run
 * has no effect. Called by the click's job, and by a request that refers to the click before its job has run. A lock on the visitor
 * makes sure that one transaction at a time does this.
 * @throws Problem resource_not_found when the click does not exist in the program
 */
export async function attributePendingClicks(
  tx: Tx,
  click_id: string,
  program_id?: string,
): Promise<{ click: ClickRow; program: Program }> {
  const click = await tx.maybe<ClickRow>(
    sql`select ${columns} from program.click t where ${tenant(tx)} and t.id = ${click_id}`,
  );
  if (!click || (program_id !== undefined && click.program_id !== program_id)) {
    throw new Problem('resource_not_found', `No click with the id '${click_id}' in this program.`, {
      param: 'click_id',
    });
  }
  return { click, program: await attributeVisitor(tx, click, click.id) };
}

/**
 * Attributes the pending clicks of a visitor. No other transaction attributes one of theirs until this one ends.
 * @param click_id a click of the visitor that may be older than any job is late
 */
export async function attributeVisitor(tx: Tx, visitor: Visitor, click_id: string | null = null): Promise<Program> {
  const [, pending, program] = await Promise.all([
    lockVisitor(tx, visitor),
    pendingClicks(tx, visitor, click_id),
    programs.get(tx, visitor.program_id),
  ]);
  for (const click of pending) await attribute(tx, click, program);
  return program;
}

/**
 * Attributes a click that a request refers to: see `attributePendingClicks`. If the live referral is a visit that has expired by now,
 * the credit moves to this click, provided that the click earns credit.
 * @returns the visitor's live referral, which may belong to another partner; undefined where there is none
 */
export async function referralOfClick(
  tx: Tx,
  click_id: string,
  program_id: string,
): Promise<{ click: ClickRow; referral: Referral | undefined }> {
  const { click, program } = await attributePendingClicks(tx, click_id, program_id);
  const live = await liveReferral(tx, click);
  const expires_at = windowEnd(click.created_at, program.cookie_days);
  const counts = expires_at > tx.now && earnsCredit(click, program.blocked_countries);
  if (!counts || !live || !isSuperseded(live, click, tx.now)) return { click, referral: live };
  const referral = await moveCredit(tx, live, click, expires_at);
  await recordAttribution(tx, click, referral.id);
  return { click, referral };
}

/** Whether a referral has expired and a click through another partner may take its credit. */
const isSuperseded = (referral: Referral, click: ClickRow, now: string): boolean =>
  allows(referral_states, referral.status, 'release') &&
  referral.expires_at <= now &&
  referral.partner_id !== click.partner_id;

const columns = sql`t.id, t.program_id, t.partner_id, t.link_id, t.visitor_token, t.landing_url, t.user_agent, t.ip_hash, t.country, t.made_while_paused,
  t.created_at,
  (select p.status from program.partner p
    where p.organization_id = t.organization_id and p.id = t.partner_id and p.deleted_at is null) as partner_status`;

/** A browser, as the site that it visits calls it: unique in a program. */
type Visitor = Pick<ClickRow, 'program_id' | 'visitor_token'>;

const lockVisitor = (tx: Tx, { program_id, visitor_token }: Visitor) =>
  tx.all(sql`select pg_advisory_xact_lock(hashtextextended(${`${program_id} ${visitor_token}`}, 2))`);

/** The longest that a job can be late: only the click's partitions since then, and since the click itself, are searched. */
const max_delay = '30 days';

const pendingClicks = (tx: Tx, { program_id, visitor_token }: Visitor, click_id: string | null): Promise<ClickRow[]> =>
  tx.all(sql`
    select ${columns}
    from program.click t
    where ${tenant(tx)} and t.program_id = ${program_id} and t.visitor_token = ${visitor_token} and t.attributed_at is null
      and t.id >= least(${click_id}::text collate "C", 'clk_' || core.id_time_part(${tx.now}::timestamptz - ${max_delay}::interval))
    order by t.created_at, t.id`);

async function attribute(tx: Tx, click: ClickRow, program: Program): Promise<void> {
  const referral = earnsCredit(click, program.blocked_countries) ? await credit(tx, click, program) : undefined;
  await recordAttribution(tx, click, referral?.partner_id === click.partner_id ? referral.id : null);
}

const recordAttribution = (tx: Tx, click: ClickRow, referral_id: string | null) =>
  tx.all(sql`
    update program.click as t set referral_id = ${referral_id}, attributed_at = ${tx.now}::timestamptz where ${tenant(tx)} and t.id = ${click.id}`);

/** Applies a click that earns credit. @returns the visitor's live referral, which may belong to another partner */
async function credit(tx: Tx, click: ClickRow, program: Program): Promise<Referral> {
  const live = await liveReferral(tx, click);
  const effect = creditOf(live, click, program.attribution);
  const expires_at = windowEnd(click.created_at, program.cookie_days);
  if (live && effect === 'keep') return live;
  if (live && effect === 'renew') {
    if (expires_at > live.expires_at) await referrals.update(tx, live.id, { expires_at });
    return live;
  }
  return live ? moveCredit(tx, live, click, expires_at) : createReferral(tx, click, expires_at);
}

async function moveCredit(tx: Tx, live: Referral, click: ClickRow, expires_at: string): Promise<Referral> {
  await deleteReferral(tx, live, 'reattributed');
  return createReferral(tx, click, expires_at);
}

async function createReferral(tx: Tx, click: ClickRow, expires_at: string): Promise<Referral> {
  const { program_id, partner_id, link_id, landing_url, country, visitor_token } = click;
  const referral = (await referrals.insert(tx, {
    id: newId('ref'),
    program_id,
    partner_id,
    link_id,
    landing_url,
    country,
    visitor_token,
    utm: utmOf(landing_url),
    tracked_by: 'link',
    status: 'visit',
    expires_at,
  })) as Referral;
  tx.emit(event('referral.created', referral));
  return referral;
}

/** A visit through a partner who was deleted has ended with that, also before a job has written so. */
async function liveReferral(
  tx: Tx,
  { program_id, visitor_token, partner_id }: ClickRow,
): Promise<Referral | undefined> {
  const live = await referrals.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program_id} and t.visitor_token = ${visitor_token}`,
    lockOf(true),
  );
  if (!live || live.partner_id === partner_id) return live;
  const partner = await tx.maybe<{ deleted_at: string | null }>(
    sql`select t.deleted_at from program.partner t where ${tenant(tx)} and t.id = ${live.partner_id}`,
  );
  const { deleted_at = null } = partner ?? {};
  return deleted_at !== null && deleted_at < live.expires_at ? { ...live, expires_at: deleted_at } : live;
}

/** The `utm_*` parameters of a URL, without the prefix. A URL can contain NUL, which JSON in Postgres cannot: it is removed. */
function utmOf(landing_url: string | null): Record<string, string> | null {
  const params = [...(URL.parse(landing_url ?? '')?.searchParams ?? [])]
    .map((pair) => pair.map((part) => part.replaceAll('\0', '')) as [string, string])
    .filter(([name]) => name.startsWith('utm_'));
  return params.length === 0 ? null : Object.fromEntries(params.map(([name, value]) => [name.slice(4), value]));
}
