import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import sql from 'sql-template-tag';
import { isBrowsing, sendPlainPage } from '../../core/formats/plain_page.ts';
import { withinDeadline } from '../../core/http/deadline.ts';
import { isPublicAddress } from '../../core/net/address.ts';
import { addressOf } from '../../core/net/client_address.ts';
import type { Asked } from '../../core/pool/lending.ts';
import { runFor } from '../../core/postgres/database.ts';
import type { Store } from '../../core/postgres/transaction.ts';
import type { Services } from '../../core/resource/services.ts';
import { inSharedTransaction } from '../../core/resource/shared_transaction.ts';
import { allows, statusesThat } from '../../core/resource/states.ts';
import { Problem } from '../../core/values/problem.ts';
import { partner_states } from '../partners/partner.ts';
import { type Program, program_states } from '../programs/program.ts';
import { type Click, type NewClick, recordClicks } from './click.ts';
import { click_param, trackedUrl, withVisitorQuery } from './link.ts';
import { hashAddress } from './visitor_address.ts';

/** The cookie that identifies a visitor on the short domain. IP address and user agent are never used for this. */
const cookie = 'rail_visitor';

/** A link as a request for its short URL reads it. */
interface ShortLink {
  organization_id: string;
  program_id: string;
  partner_id: string;
  link_id: string;
  param: string;
  value: string;
  url: string;
  short_url: string;
  cookie_days: number;
  program_status: Program['status'];
  /** True if clicks through the partner are recorded, as by `POST /v1/clicks`. */
  records_clicks: boolean;
}

/**
 * `GET /r/{slug}`: redirects with 302 to the tracked URL once the click is committed, with the visitor's own query and the click's id as
 * `rail_click`. It needs no key. `?to=` names another page of the same website. A visitor's repeated load within a second is no second click. A `HEAD` request, a browser that loads the page before anybody asks for it, and a visit through a partner who is
 * pending or declined, are redirected without recording a click.
 */
export function mountShortLinks(app: FastifyInstance, store: Store, services: Services): void {
  const record = inSharedTransaction(store, {
    within: (work) => withinDeadline({ server: app, giveUp: undefined }, 'clicks', work),
    run: async (tx, visits: NewClick[]) => recordClicks(tx, visits),
  });
  const repeats = new Repeats<Click | undefined>();
  app.route<{ Params: { slug: string } }>({
    method: ['GET', 'HEAD'],
    url: '/r/:slug',
    handler: async (request, reply) => {
      reply.headers({
        ...{ 'Cache-Control': 'no-store', 'X-Robots-Tag': 'noindex', Vary: Object.keys(ahead).join(', ') },
        // The page learns which website the visitor comes from, and no more.
        'Referrer-Policy': 'strict-origin-when-cross-origin',
      });
      const link = await withinDeadline(request, 'links', (asked) => findShortLink(store, asked, request.params.slug));
      if (!link) return refuseUnknown(store, request, reply);
      let url = landingUrl(link, queryOf(request));
      if (request.method === 'GET' && link.records_clicks && !isAhead(request)) {
        const known = visitorOf(request);
        const visitor_token = known ?? randomBytes(18).toString('base64url');
        const visit = visitBy(request, services, link, { visitor_token, url });
        const recorded = () => withinDeadline(request, 'clicks', () => record(link.organization_id, visit));
        const click = (await (known ? repeats.once(`${known} ${link.link_id}`, recorded) : recorded())) as Click;
        reply.header('Set-Cookie', cookieOf(link, visitor_token));
        if (link.param !== click_param) url = trackedUrl(url, click_param, click.id);
      }
      // A header can contain ASCII only: the URL is percent-encoded, as a browser does it.
      return reply.redirect(new URL(url).href, 302);
    },
  });
}

/** Repeats within this time are one visit: a double click, or a page that a browser loads again. */
const repeat_ms = 1_000;
/** Beyond this many, those that are over are forgotten. */
const most_repeats = 10_000;

/** Does what is asked for again within a second once, and gives all who ask the same. */
class Repeats<Result> {
  readonly #recent = new Map<string, { until: number; result: Promise<Result> }>();

  once(name: string, work: () => Promise<Result>): Promise<Result> {
    const now = performance.now();
    const known = this.#recent.get(name);
    if (known && known.until > now) return known.result;
    if (this.#recent.size >= most_repeats)
      for (const [other, { until }] of this.#recent) if (until <= now) this.#recent.delete(other);
    const result = work();
    this.#recent.set(name, { until: now + repeat_ms, result });
    result.catch(() => this.#recent.delete(name));
    return result;
  }
}

/**
 * The page that a visit leads to, with the visitor's query. `?to=/pricing` leads to another page of the same website; a `to` that names no page of
 * it is a parameter as any other.
 */
export function landingUrl({ url, param, value }: Pick<ShortLink, 'url' | 'param' | 'value'>, query: string): string {
  const parts = query.split('&');
  const to = new URLSearchParams(query).get('to');
  const page = to !== null && /^(?:\/|https?:)/i.test(to) ? URL.parse(to, url) : null;
  const { origin } = new URL(url);
  if (!page || page.origin !== origin || page.username !== '' || page.password !== '')
    return withVisitorQuery(url, query, param);
  const others = parts.filter((part) => !new URLSearchParams(part).has('to')).join('&');
  return withVisitorQuery(trackedUrl(page.href, param, value), others, param);
}

/** Headers by which browsers say that nobody has asked for a page yet. */
const ahead: Record<string, RegExp> = {
  'Sec-Purpose': /\b(?:prefetch|prerender)\b/i,
  Purpose: /\b(?:prefetch|prerender|preview)\b/i,
  'X-Purpose': /\b(?:prefetch|prerender|preview|instant)\b/i,
  'X-Moz': /\bprefetch\b/i,
};

const isAhead = ({ headers }: FastifyRequest): boolean =>
  Object.entries(ahead).some(([name, says]) => says.test(String(headers[name.toLowerCase()] ?? '')));

/** The query of a request, as it was sent. */
const queryOf = ({ url }: FastifyRequest): string => /\?([^#]*)/.exec(url)?.[1] ?? '';

/** The cookie lasts as long as the attribution window, and each click renews it. */
const cookieOf = ({ short_url, cookie_days }: ShortLink, visitor_token: string): string =>
  [
    `${cookie}=${visitor_token}`,
    // The path that the browser sees, which a reverse proxy may have changed.
    `Path=${new URL('.', short_url).pathname.slice(0, -1)}`,
    `Max-Age=${cookie_days * 86_400}`,
    'HttpOnly',
    'SameSite=Lax',
    ...(short_url.startsWith('https:') ? ['Secure'] : []),
  ].join('; ');

const no_link = {
  title: 'Link not found',
  text: 'This link does not exist or was deleted. Check the address, or ask the person who shared it for a new link.',
};

/** Browsers go on to the website of the program whose link it was, else receive a page; other clients receive the error envelope. */
async function refuseUnknown(
  store: Store,
  request: FastifyRequest<{ Params: { slug: string } }>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  if (!isBrowsing(request)) throw new Problem('resource_not_found', 'This link does not exist or was deleted.');
  const website = await withinDeadline(request, 'links', (asked) => formerWebsite(store, asked, request.params.slug));
  return website ? reply.redirect(new URL(website).href, 302) : sendPlainPage(reply, 404, no_link);
}

async function formerWebsite({ database }: Store, asked: Asked, slug: string): Promise<string | undefined> {
  const [program] = await runFor<{ website_url: string }>(
    database,
    asked,
    sql`
      select g.website_url
      from program.link l
      join program.program g on g.organization_id = l.organization_id and g.id = l.program_id
      where l.short_slug = ${slug}
      order by l.deleted_at desc nulls first
      limit 1`,
  );
  return program?.website_url;
}

/** Slugs are unique over all organizations, so this query alone names none. The link is found first: Postgres keeps no statistics of slugs. */
async function findShortLink({ database }: Store, asked: Asked, slug: string): Promise<ShortLink | undefined> {
  const [link] = await runFor<ShortLink>(
    database,
    asked,
    sql`
      with l as materialized (
        select t.* from program.link t where t.short_slug = ${slug} and t.deleted_at is null
      )
      select l.organization_id, l.program_id, l.partner_id, l.id as link_id, l.param, l.value, l.url, l.short_url, g.cookie_days, g.status as program_status,
        p.status = any(${statusesThat(partner_states, 'record_click')}) as records_clicks
      from l
      join program.program g on g.organization_id = l.organization_id and g.id = l.program_id
      join program.partner p on p.organization_id = l.organization_id and p.id = l.partner_id
      where p.deleted_at is null`,
  );
  return link;
}

/** The longest landing page that is recorded with the visitor's query, as in a request for a click. */
const longest_url = 2048;

function visitBy(
  request: FastifyRequest,
  { vault }: Services,
  link: ShortLink,
  { visitor_token, url }: { visitor_token: string; url: string },
): NewClick {
  const { program_id, partner_id, link_id, param, value, program_status } = link;
  const address = addressOf(request);
  return {
    ...{ program_id, partner_id, link_id, param, value, visitor_token, request_id: request.id },
    ...{ country: null, device: null },
    landing_url: url.length <= longest_url ? url : link.url,
    made_while_paused: !allows(program_states, program_status, 'refer'),
    referer: request.headers.referer?.slice(0, 2048) ?? null,
    user_agent: request.headers['user-agent']?.slice(0, 1024) ?? null,
    // A private address is that of a proxy: with it, all visitors would look like one.
    ip_hash: isPublicAddress(address) ? hashAddress(vault, address) : null,
  };
}

/** The visitor's token from the cookie, if it is well-formed. */
function visitorOf({ headers }: FastifyRequest): string | undefined {
  return new RegExp(`(?:^|; *)${cookie}=([\\w-]{24})(?:;|$)`).exec(headers.cookie ?? '')?.[1];
}
