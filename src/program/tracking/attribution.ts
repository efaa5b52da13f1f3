import { isbot } from 'isbot';
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { lockOf, tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { event } from '../events/catalogue.ts';
import { type Program, programs } from '../programs/program.ts';
import { deleteReferral, type Referral, referrals } from './referral.ts';

const day_ms = 86_400_000;

export interface ClickRow {
  id: string;
  program_id: string;
  partner_id: string;
  link_id: string | null;
  visitor_token: string;
  landing_url: string;
  user_agent: string | null;
  ip_hash: string | null;
  country: string | null;
  created_at: string;
  partner_status: string | null;
}

export type Credit = 'create' | 'renew' | 'move' | 'keep';

/**
 * What a click does to the visitor's live referral. "While it is a `visit`, a click through another partner moves the credit under
 * `last_click` and changes nothing under `first_click`. Once a customer hangs on it, it stays." A window that has passed protects nobody.
 */
export function creditOf(
  live: Pick<Referral, 'partner_id' | 'status' | 'expires_at'> | undefined,
  click: { partner_id: string; created_at: string },
  attribution: Program['attribution'],
): Credit {
  if (!live) return 'create';
  if (live.status !== 'visit') return 'keep';
  if (live.partner_id === click.partner_id) return 'renew';
  return attribution === 'last_click' || live.expires_at <= click.created_at ? 'move' : 'keep';
}

/** "A click from one of the program's `blocked_countries`, from a known robot, or through a suspended partner … makes no referral." */
export const earnsCredit = (
  click: Pick<ClickRow, 'country' | 'user_agent' | 'partner_status'>,
  blocked_countries: string[],
): boolean =>
  click.partner_status === 'active' &&
  !(click.country && blocked_countries.includes(click.country)) &&
  !isbot(click.user_agent);

/** `expires_at` = the crediting click + the program's `cookie_days`. */
export const windowEnd = (clicked_at: string, cookie_days: number): string =>
  new Date(Date.parse(clicked_at) + cookie_days * day_ms).toISOString();

/**
 * Judges a click, and whatever else its visitor clicked and nobody has judged, in the order of the clicks: whose job runs first decides
 * nothing. The job does it, and so does whatever names the click before its job ran. Visitors are judged by one transaction at a time.
 * @throws Problem resource_not_found when the click is not one of the program, or of another organization
 */
export async function attributePendingClicks(
  tx: Tx,
  click_id: string,
  program_id?: string,
): Promise<{ click: ClickRow; of: Program }> {
  const click = await tx.maybe<ClickRow>(
    sql`select ${columns} from program.click t where ${tenant(tx)} and t.id = ${click_id}`,
  );
  if (!click || (program_id !== undefined && click.program_id !== program_id)) {
    throw new Problem('resource_not_found', `No click with the id '${click_id}' in this program.`, {
      param: 'click_id',
    });
  }
  const [, waiting, of] = await Promise.all([
    lockVisitor(tx, click),
    waitingClicks(tx, click),
    programs.get(tx, click.program_id),
  ]);
  for (const one of waiting) await judge(tx, one, of);
  return { click, of };
}

/**
 * Judges a click that is named, see `judgeClick`. The live referral gives way to it where that is a visit that has lapsed by now, and the
 * click counts: what was clicked before protects nobody.
 * @returns the visitor's live referral, which may be another partner's; undefined where there is none
 */
export async function referralOfClick(
  tx: Tx,
  click_id: string,
  program_id: string,
): Promise<{ click: ClickRow; referral: Referral | undefined }> {
  const { click, of } = await attributePendingClicks(tx, click_id, program_id);
  const live = await liveReferral(tx, click);
  const gives_way = live?.status === 'visit' && live.expires_at <= tx.now && live.partner_id !== click.partner_id;
  const expires_at = windowEnd(click.created_at, of.cookie_days);
  if (!gives_way || expires_at <= tx.now || !earnsCredit(click, of.blocked_countries)) return { click, referral: live };
  const referral = await moveCredit(tx, live, click, expires_at);
  await settle(tx, click, referral.id);
  return { click, referral };
}

const columns = sql`t.id, t.program_id, t.partner_id, t.link_id, t.visitor_token, t.landing_url, t.user_agent, t.ip_hash, t.country, t.created_at,
  (select p.status from program.partner p
    where p.organization_id = t.organization_id and p.id = t.partner_id and p.deleted_at is null) as partner_status`;

const lockVisitor = (tx: Tx, { program_id, visitor_token }: ClickRow) =>
  tx.all(sql`select pg_advisory_xact_lock(hashtextextended(${`${program_id} ${visitor_token}`}, 2))`);

/** No job is late by more: only the weeks since then, and since the click itself, are looked through. */
const longest_wait = '30 days';

const waitingClicks = (tx: Tx, { id: click_id, program_id, visitor_token }: ClickRow): Promise<ClickRow[]> =>
  tx.all(sql`
    select ${columns}
    from program.click t
    where ${tenant(tx)} and t.program_id = ${program_id} and t.visitor_token = ${visitor_token} and t.attributed_at is null
      and t.id >= least(${click_id} collate "C", 'clk_' || core.id_time_part(${tx.now}::timestamptz - ${longest_wait}::interval))
    order by t.created_at, t.id`);

async function judge(tx: Tx, click: ClickRow, of: Program): Promise<void> {
  const credited = earnsCredit(click, of.blocked_countries) ? await credit(tx, click, of) : undefined;
  await settle(tx, click, credited?.partner_id === click.partner_id ? credited.id : null);
}

const settle = (tx: Tx, click: ClickRow, referral_id: string | null) =>
  tx.all(sql`
    update program.click as t set referral_id = ${referral_id}, attributed_at = ${tx.now}::timestamptz where ${tenant(tx)} and t.id = ${click.id}`);

async function credit(tx: Tx, click: ClickRow, of: Program): Promise<Referral> {
  const live = await liveReferral(tx, click);
  const what = creditOf(live, click, of.attribution);
  const expires_at = windowEnd(click.created_at, of.cookie_days);
  if (live && what === 'keep') return live;
  if (live && what === 'renew') {
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
  const { program_id, partner_id, link_id, landing_url, visitor_token } = click;
  const made = (await referrals.insert(tx, {
    id: newId('ref'),
    program_id,
    partner_id,
    link_id,
    landing_url,
    visitor_token,
    utm: utmOf(landing_url),
    tracked_by: 'link',
    status: 'visit',
    expires_at,
  })) as Referral;
  const { id: referral_id, tracked_by } = made;
  tx.emit(
    event('referral.created', program_id, { referral_id, partner_id, link_id, landing_url, tracked_by, expires_at }),
  );
  return made;
}

const liveReferral = (tx: Tx, { program_id, visitor_token }: ClickRow): Promise<Referral | undefined> =>
  referrals.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program_id} and t.visitor_token = ${visitor_token}`,
    lockOf(true),
  );

/** JSON in Postgres holds no NUL, which an address can: it is left out. */
function utmOf(landing_url: string): Record<string, string> | null {
  const found = [...new URL(landing_url).searchParams]
    .map((pair) => pair.map((part) => part.replaceAll('\0', '')) as [string, string])
    .filter(([name]) => name.startsWith('utm_'));
  return found.length === 0 ? null : Object.fromEntries(found.map(([name, value]) => [name.slice(4), value]));
}
