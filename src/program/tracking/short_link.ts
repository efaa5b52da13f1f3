import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import sql from 'sql-template-tag';
import { isPublicAddress } from '../../core/net/address.ts';
import { run } from '../../core/postgres/database.ts';
import { type Store, transaction } from '../../core/postgres/transaction.ts';
import type { Services } from '../../core/resource/services.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { recordClick } from './click.ts';
import { hashAddress } from './visitor_address.ts';

/** Tells a visitor apart on the short domain: never the address and the browser's name. */
const cookie = 'rail_visitor';

interface Followed {
  organization_id: string;
  program_id: string;
  partner_id: string;
  link_id: string;
  param: string;
  value: string;
  url: string;
  short_url: string;
  cookie_days: number;
  /** Whether a click through the partner is recorded, as by `POST /v1/clicks`. */
  records: boolean;
}

/**
 * `GET /r/{slug}`: answers 302 with the tracked address once the click is durable. It needs no key. `HEAD` tells where it leads, and is no
 * click; nor is a visit through a partner who is not active yet, or declined: whoever comes is sent on all the same.
 */
export function mountShortLinks(app: FastifyInstance, store: Store, services: Services): void {
  app.route<{ Params: { slug: string } }>({
    method: ['GET', 'HEAD'],
    url: '/r/:slug',
    schema: { hide: true } as object,
    handler: async (request, reply) => {
      reply.headers({ 'Cache-Control': 'no-store', 'X-Robots-Tag': 'noindex' });
      const followed = await linkOf(store, request.params.slug);
      if (!followed) return refuseUnknown(request, reply);
      if (request.method === 'GET' && followed.records) {
        const visitor_token = visitorOf(request) ?? randomBytes(18).toString('base64url');
        await follow(store, services, followed, visitor_token, request);
        reply.header('Set-Cookie', cookieOf(followed, visitor_token));
      }
      // A header holds ASCII alone: the address goes as a browser would ask for it.
      return reply.redirect(new URL(followed.url).href, 302);
    },
  });
}

/** It lives as long as a click counts, and each click begins it anew. */
const cookieOf = ({ short_url, cookie_days }: Followed, visitor_token: string): string =>
  [
    `${cookie}=${visitor_token}`,
    // As the browser sees it, which a proxy may have moved.
    `Path=${new URL('.', short_url).pathname.slice(0, -1)}`,
    `Max-Age=${cookie_days * 86_400}`,
    'HttpOnly',
    'SameSite=Lax',
    ...(short_url.startsWith('https:') ? ['Secure'] : []),
  ].join('; ');

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Link not found</title>
<h1>This link does not exist any more</h1>
<p>Whoever gave it to you may have a newer one.</p>
</html>
`;

/** People are shown a page; programs are told as everywhere else. */
function refuseUnknown({ headers }: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (!headers.accept?.includes('text/html'))
    throw new Problem('resource_not_found', 'This link does not exist any more.');
  return reply
    .code(404)
    .headers({ 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': "default-src 'none'" })
    .send(page);
}

/** Slugs are unique over all tenants, so this alone is asked without one. */
async function linkOf({ database }: Store, slug: string): Promise<Followed | undefined> {
  const [found] = await run<Followed>(
    database,
    sql`
      select l.organization_id, l.program_id, l.partner_id, l.id as link_id, l.param, l.value, l.url, l.short_url, g.cookie_days,
        p.status in ('active', 'suspended') as records
      from program.link l
      join program.program g on g.organization_id = l.organization_id and g.id = l.program_id
      join program.partner p on p.organization_id = l.organization_id and p.id = l.partner_id
      where l.short_slug = ${slug} and l.deleted_at is null and p.deleted_at is null`,
  );
  return found;
}

async function follow(
  store: Store,
  services: Services,
  of: Followed,
  visitor_token: string,
  request: FastifyRequest,
): Promise<void> {
  const { organization_id, program_id, partner_id, link_id, param, value, url } = of;
  await transaction(store, { organization_id, request_id: request.id }, (tx) =>
    recordClick(tx, {
      id: newId('clk'),
      program_id,
      partner_id,
      link_id,
      param,
      value,
      landing_url: url,
      visitor_token,
      referer: request.headers.referer?.slice(0, 2048),
      user_agent: request.headers['user-agent']?.slice(0, 1024),
      // The address of a proxy that says nothing of the visitor would make all visitors one.
      ip_hash: isPublicAddress(request.ip) ? hashAddress(services.vault, request.ip) : null,
    }),
  );
}

/** The visitor's token, where the browser brings a whole one. */
function visitorOf({ headers }: FastifyRequest): string | undefined {
  return new RegExp(`(?:^|; *)${cookie}=([\\w-]{24})(?:;|$)`).exec(headers.cookie ?? '')?.[1];
}
