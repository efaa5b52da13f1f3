/** Records a page's click, and answers with the click of the visitor that the browser is to keep. */
import { randomBytes } from 'node:crypto';
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { Problem } from '../../core/values/problem.ts';
import { isStorable } from '../../core/values/texts/stored_text.ts';
import { windowEnd } from '../tracking/attribution.ts';
import { recordSentClicks, type SentClick, type Target, targetsOf } from '../tracking/sent_click.ts';
import type { UsableKey } from './publishable_key.ts';

const click_id = z.string().regex(/^clk_[a-z0-9]{26}$/, 'must be the id of a click, clk_…');
/** A text that anybody can put into the address of a page, or that a browser says about the visit: one that cannot be used is left out, and refuses nothing. */
const detail = (most: number) => z.string().min(1).max(most).refine(isStorable).optional().catch(undefined);

export const TrackedClick = z.strictObject({
  key: z.string(),
  /** The parameter and the value of the page's URL that may name a partner. */
  param: detail(32),
  value: detail(64),
  /** The click that the URL names: of a short link, or of another domain of the website. */
  rail_click: click_id.optional().catch(undefined),
  /** The click that the browser has kept. */
  click_id: click_id.optional().catch(undefined),
  url: detail(1_024),
  referrer: detail(1_024),
  /** The visitor did not agree to be recognized: nothing is kept in the browser. */
  cookieless: z.boolean().default(false),
  /** The visitor has withdrawn consent: the cookie is deleted. */
  withdraw: z.boolean().default(false),
});

export type TrackedClick = z.infer<typeof TrackedClick>;

/** A click that a page sent, with what the request says about its browser. */
export interface PageVisit {
  key: UsableKey;
  sent: TrackedClick;
  user_agent: string | undefined;
  is_bot: boolean;
  ip: string | undefined;
  setup: string | null;
  request_id: string;
}

/** The click that the browser is to keep. */
export interface KeptClick {
  click_id: string;
  expires_at: string;
}

interface KnownClick {
  id: string;
  program_id: string;
  visitor_token: string;
  created_at: string;
}

export interface Facts {
  known: Map<string, KnownClick>;
  targets: Target[];
}

/** Reads the clicks that browsers have, and the partners whom the values name, for visits that share a transaction. */
export async function factsOf(tx: Tx, visits: PageVisit[]): Promise<Facts> {
  const [clicks, targets] = await Promise.all([clicksOf(tx, visits), targetsOf(tx, recorded(visits).map(asSent))]);
  return { known: new Map(clicks.map((click) => [click.id, click])), targets };
}

function clicksOf(tx: Tx, visits: PageVisit[]): Promise<KnownClick[]> {
  const named = visits.flatMap(({ sent }) => [sent.rail_click, sent.click_id]).filter((id) => id !== undefined);
  if (named.length === 0) return Promise.resolve([]);
  return tx.all<KnownClick>(sql`
    select t.id, t.program_id, t.visitor_token, t.created_at
    from program.click t
    where ${tenant(tx)} and t.id = any(${[...new Set(named)]})
      -- Found to have earned nothing: whoever has it is as good as new.
      and not t.is_bot and (t.attributed_at is null or t.referral_id is not null)`);
}

/** Those that may record a click: their URL has a value, and no bot asks. */
const recorded = (visits: PageVisit[]): PageVisit[] =>
  visits.filter(({ sent, is_bot }) => sent.value !== undefined && !is_bot);

const asSent = ({ key, sent }: PageVisit) => ({
  program_id: key.program_id,
  param: sent.param ?? 'ref',
  value: sent.value as string,
});

/**
 * The clicks that browsers are to keep. One that the URL names is taken over, and none is recorded beside it; under `first_click` the one that
 * the browser has stays. A value that names no partner changes nothing.
 * @returns null where there is none
 */
export async function trackClicks(
  context: { tx: Tx; services: Services },
  visits: PageVisit[],
  { known, targets }: Facts,
): Promise<(KeptClick | null)[]> {
  const target_of = new Map(recorded(visits).map((visit, nth) => [visit, targets[nth] as Target]));
  const found = visits.map((visit) => {
    const kept = keptOf(context.tx, visit.key, known.get(visit.sent.click_id ?? ''));
    const named = keptOf(context.tx, visit.key, known.get(visit.sent.rail_click ?? ''));
    const target = target_of.get(visit);
    const arrived = named && target?.partner_id && isPassedOn(context.tx, named, kept) ? undefined : named;
    return { visit, kept, arrived, target: arrived ? undefined : target };
  });
  const making = found.filter(({ target }) => target?.partner_id);
  const made = await recordSentClicks(
    context,
    making.map(({ visit, kept }) => ({ body: sentClick(visit, kept), request_id: visit.request_id })),
    making.map(({ target }) => target as Target),
  );
  const click_of = new Map(making.map(({ visit }, nth) => [visit, made[nth]]));
  noteUse(context.tx, visits);
  return found.map(({ visit, kept, arrived }) => {
    if (visit.sent.cookieless) return null;
    const click = click_of.get(visit);
    const newest = arrived ?? (click instanceof Problem ? undefined : click);
    const chosen = kept && visit.key.attribution === 'first_click' ? kept : (newest ?? kept);
    return chosen ? { click_id: chosen.id, expires_at: windowEnd(chosen.created_at, visit.key.cookie_days) } : null;
  });
}

/**
 * The address that a short link led to names a partner besides its click. Who opens it later was given it by somebody: another visitor, who would
 * else be taken for the first one, and sign up as the same customer.
 */
const isPassedOn = ({ now }: Tx, named: KnownClick, kept: KnownClick | undefined): boolean =>
  named.id !== kept?.id && Date.parse(now) - Date.parse(named.created_at) > landing_ms;
const landing_ms = 30 * 60_000;

/** A click of the program whose attribution window has not ended. */
function keptOf(tx: Tx, { program_id, cookie_days }: UsableKey, click: KnownClick | undefined): KnownClick | undefined {
  if (!click || click.program_id !== program_id) return undefined;
  return windowEnd(click.created_at, cookie_days) > tx.now ? click : undefined;
}

/** Clicks of one browser are of one visitor, whom the click that it has kept names. */
function sentClick(visit: PageVisit, kept: KnownClick | undefined): SentClick {
  const { sent, user_agent, ip } = visit;
  const url = URL.parse(sent.url ?? '');
  return {
    ...asSent(visit),
    landing_url: url && /^https?:$/.test(url.protocol) ? url.href : null,
    visitor_token: (!sent.cookieless && kept?.visitor_token) || randomBytes(18).toString('base64url'),
    ...(sent.referrer ? { referrer: sent.referrer } : {}),
    ...(user_agent === undefined ? {} : { user_agent: user_agent.slice(0, 1_024) }),
    ...(ip === undefined ? {} : { ip }),
  };
}

/** Notes, to the minute, that keys are used, and how their pages reach the service. */
function noteUse(tx: Tx, visits: PageVisit[]): void {
  const minute_ago = new Date(Date.parse(tx.now) - 60_000).toISOString();
  const stale = ({ key }: PageVisit) => (key.last_used_at ?? '') < minute_ago;
  const by_key = new Map(visits.filter(stale).map((visit) => [visit.key.id, visit]));
  for (const [id, { key, setup }] of by_key) {
    key.last_used_at = tx.now; // the copy of this process, for the rest of its second
    tx.send(sql`
      update program.publishable_key t set last_used_at = ${tx.now}::timestamptz, setup = coalesce(${setup}, t.setup)
      where ${tenant(tx)} and t.id = ${id}`);
  }
}
