import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { programs } from '../programs/program.ts';
import { type RiskFlagDraft, raiseFlags } from '../programs/raise_flag.ts';
import { click_velocity } from './risk_threshold.ts';

/** Query parameters that ad networks add to the URL of a paid click. */
const ad_click_params = [
  'gclid',
  'gbraid',
  'wbraid',
  'dclid',
  'fbclid',
  'msclkid',
  'ttclid',
  'twclid',
  'li_fat_id',
  'yclid',
  'rdt_cid',
];

interface Click {
  id: string;
  program_id: string;
  partner_id: string;
  country: string | null;
  landing_url: string | null;
  ip_hash: string | null;
  request_id: string | null;
  is_bot: boolean;
}

/** Checks a click that a request has attributed. */
export async function assessClick(tx: Tx, click_id: string): Promise<void> {
  await assessClicks(
    tx,
    await tx.all<Click>(sql`
      select t.id, t.program_id, t.partner_id, t.country, t.landing_url, t.ip_hash, t.request_id, t.is_bot
      from program.click t
      where ${tenant(tx)} and t.id = ${click_id}`),
  );
}

/**
 * Checks new clicks: blocked country, paid ad, and how many came from the same IP address lately. A partner's flag names the first such click.
 * Those of bots earn nothing, so they say nothing against the partner: a scanner that opens each link of a mail is no fraud.
 */
export async function assessClicks(tx: Tx, given: Click[]): Promise<void> {
  const clicks = given.filter(({ is_bot }) => !is_bot);
  if (clicks.length === 0) return;
  const program_ids = [...new Set(clicks.map(({ program_id }) => program_id))];
  const [found, counts] = await Promise.all([programs.byIds(tx, program_ids), countsByAddress(tx, clicks)]);
  const blocked = new Map(found.map(({ id, blocked_countries }) => [id, blocked_countries as string[]]));
  const drafts = new Map<string, RiskFlagDraft>();
  for (const click of clicks) {
    for (const draft of [blockedCountry(click, blocked), paidAd(click), velocity(click, counts)]) {
      const key = draft && `${draft.kind} ${draft.partner_id}`;
      if (key && !drafts.has(key)) drafts.set(key, draft);
    }
  }
  await raiseFlags(tx, [...drafts.values()]);
}

type Found = RiskFlagDraft | undefined;

const about = ({ program_id, partner_id, request_id }: Click) => ({
  ...{ program_id, partner_id, request_id },
  customer_id: null,
});

function blockedCountry(click: Click, blocked: Map<string, string[]>): Found {
  const { id: click_id, country } = click;
  if (country === null || !blocked.get(click.program_id)?.includes(country)) return undefined;
  return { ...about(click), kind: 'blocked_country', severity: 'low', evidence: { click_id, country } };
}

function paidAd(click: Click): Found {
  const { id: click_id, landing_url } = click;
  const parameters = landing_url === null ? undefined : URL.parse(landing_url)?.searchParams;
  const parameter = ad_click_params.find((name) => parameters?.has(name));
  if (parameter === undefined || landing_url === null) return undefined;
  const evidence = { click_id, parameter, landing_url };
  return { ...about(click), kind: 'paid_ad_traffic', severity: 'medium', evidence };
}

function velocity(click: Click, counts: Map<string, number>): Found {
  const clicks = counts.get(addressOf(click)) ?? 0;
  const { max, within } = click_velocity;
  if (clicks <= max) return undefined;
  const evidence = { click_id: click.id, clicks, within };
  return { ...about(click), kind: 'click_velocity', severity: 'medium', evidence };
}

const addressOf = ({ partner_id, ip_hash }: Pick<Click, 'partner_id' | 'ip_hash'>): string =>
  `${partner_id} ${ip_hash}`;

/** Counts recent clicks through the same partners from these IP addresses, up to a limit for each address. */
async function countsByAddress(tx: Tx, clicks: Click[]): Promise<Map<string, number>> {
  const { within, most } = click_velocity;
  const addresses = [...new Set(clicks.map(({ ip_hash }) => ip_hash).filter((hash) => hash !== null))];
  if (addresses.length === 0) return new Map();
  const rows = await tx.all<{ ip_hash: string; partner_id: string; clicks: number }>(sql`
    select a.ip_hash, c.partner_id, count(*) as clicks
    from unnest(${addresses}::text[]) as a (ip_hash)
    cross join lateral (
      select t.partner_id
      from program.click t
      where ${tenant(tx)} and t.ip_hash = a.ip_hash and not t.is_bot
        and t.created_at > ${tx.now}::timestamptz - ${within}::interval
        and t.id > 'clk_' || core.id_time_part(${tx.now}::timestamptz - ${within}::interval)
        and t.id < 'clk_' || core.id_time_part(${tx.now}::timestamptz + ${within}::interval)
      limit ${most}
    ) c
    group by a.ip_hash, c.partner_id`);
  return new Map(rows.map((row) => [addressOf(row), row.clicks]));
}
