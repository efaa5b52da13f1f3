/**
 * `POST /v1/track/click` and `POST /v1/track/lead`, for the pages of a website: they need a publishable key and an origin that it allows. Their
 * other names, `/v1/c` and `/v1/l`, are in no list of an ad blocker. `GET /rail.js` is the script that sends them.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isbot } from 'isbot';
import { withinDeadline } from '../../core/http/deadline.ts';
import { takeRawBodies } from '../../core/http/json_body.ts';
import { isPublicAddress } from '../../core/net/address.ts';
import { addressOf } from '../../core/net/client_address.ts';
import { type Store, transaction } from '../../core/postgres/transaction.ts';
import type { Services } from '../../core/resource/services.ts';
import { inSharedTransaction } from '../../core/resource/shared_transaction.ts';
import { databaseTime } from '../../core/values/clock.ts';
import { Admission, most_bytes } from './browser_request.ts';
import { mountDemoPage } from './demo_page.ts';
import { setups } from './publishable_key.ts';
import { script } from './snippet_tag.ts';
import { type Facts, factsOf, type KeptClick, type PageVisit, TrackedClick, trackClicks } from './tracked_click.ts';
import { TrackedLead, trackLead } from './tracked_lead.ts';

/** The cookie with the visitor's click. Scripts read it: checkouts are given the click. */
const cookie = 'rail_click';

export function mountTracking(app: FastifyInstance, store: Store, services: Services): void {
  app.register(async (scope) => {
    takeRawBodies(scope);
    const admission = new Admission(store.database, app);
    const track = trackingOf(app, store, services);
    const click = async (request: FastifyRequest, reply: FastifyReply) => {
      const { key, body, origin } = await admission.admit(request, reply, TrackedClick);
      labelled(reply, key.mode);
      const tracked = body.withdraw ? undefined : await track(key.organization_id, visitOf(request, key, body));
      const kept = tracked?.kept ?? null;
      if (kept || body.withdraw) reply.header('Set-Cookie', await cookieOf(origin, kept));
      return { object: 'tracked_click', click_id: kept?.click_id ?? null, expires_at: kept?.expires_at ?? null };
    };
    const lead = async (request: FastifyRequest, reply: FastifyReply) => {
      const { key, body, sent } = await admission.admit(request, reply, TrackedLead);
      labelled(reply, key.mode);
      const { organization_id } = key;
      return withinDeadline(request, 'customers', (asked) =>
        transaction(store, { organization_id, request_id: request.id, asked }, (tx) =>
          trackLead(tx, { services, key, sent, body }),
        ),
      );
    };
    for (const [handler, urls] of [
      [click, ['/v1/track/click', '/v1/c']] as const,
      [lead, ['/v1/track/lead', '/v1/l']] as const,
    ])
      for (const url of urls) scope.route({ method: 'POST', url, bodyLimit: most_bytes, handler });
  });
  mountScript(app);
  mountDemoPage(app, services);
}

const labelled = (reply: FastifyReply, mode: 'live' | 'test') =>
  reply.header('X-Rail-Livemode', String(mode === 'live'));

/** Lets the clicks of an organization share a transaction, as those of `POST /v1/clicks` do. */
const trackingOf = (app: FastifyInstance, store: Store, services: Services) =>
  inSharedTransaction<PageVisit, Facts, { kept: KeptClick | null }>(store, {
    within: (work) => withinDeadline({ server: app, giveUp: undefined }, 'clicks', work),
    ahead: factsOf,
    run: async (tx, visits, facts) => (await trackClicks({ tx, services }, visits, facts)).map((kept) => ({ kept })),
  });

/** The part of a request that a reverse proxy of the merchant passes on. */
function visitOf(request: FastifyRequest, key: PageVisit['key'], sent: TrackedClick): PageVisit {
  const address = addressOf(request);
  const user_agent = request.headers['user-agent'];
  const site = request.headers['sec-fetch-site'] as keyof typeof setups | undefined;
  return {
    ...{ key, sent, user_agent, is_bot: isbot(user_agent), request_id: request.id },
    // A private address is that of a proxy: with it, all visitors would look like one.
    ip: isPublicAddress(address) ? address : undefined,
    setup: (site && setups[site]) ?? null,
  };
}

/**
 * A cookie of the whole domain of the page. A browser takes it where the request went to that domain, by a reverse proxy or a subdomain, and drops it
 * elsewhere: the script then sets it itself.
 */
async function cookieOf(origin: string, kept: KeptClick | null): Promise<string> {
  const { protocol, hostname } = new URL(origin);
  const { getDomain } = await import('tldts');
  const domain = getDomain(hostname, { allowPrivateDomains: true });
  const seconds = kept ? Math.floor((Date.parse(kept.expires_at) - databaseTime()) / 1_000) : 0;
  return [
    `${cookie}=${kept?.click_id ?? ''}`,
    'Path=/',
    `Max-Age=${Math.max(0, seconds)}`,
    'SameSite=Lax',
    ...(domain === null ? [] : [`Domain=${domain}`]),
    ...(protocol === 'https:' ? ['Secure'] : []),
  ].join('; ');
}

/** `GET /rail.js`, and the copy whose name changes with its content: that one may be kept for ever, and be checked by its `integrity`. */
function mountScript(app: FastifyInstance): void {
  const send = (reply: FastifyReply, cache: string) =>
    reply
      .headers({
        'Content-Type': 'text/javascript; charset=utf-8',
        'Cache-Control': cache,
        'Access-Control-Allow-Origin': '*',
        'Cross-Origin-Resource-Policy': 'cross-origin',
        ETag: `"${script().integrity}"`,
      })
      .serializer(String)
      .send(script().text);
  app.get('/rail.js', async (_, reply) => send(reply, 'public, max-age=3600, stale-while-revalidate=86400'));
  app.get(script().path, async (_, reply) => send(reply, 'public, max-age=31536000, immutable'));
}
