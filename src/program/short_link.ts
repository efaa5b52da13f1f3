import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import sql from 'sql-template-tag';
import { run } from '../core/database.ts';
import { newId } from '../core/id.ts';
import type { Services } from '../core/operation.ts';
import { Problem } from '../core/problem.ts';
import { type Store, transaction } from '../core/transaction.ts';
import { recordClick } from './click.ts';

/** Tells a visitor apart on the short domain: never the address and the browser's name. */
const cookie = 'rail_visitor';
const cookie_days = 400;

interface Followed {
  organization_id: string;
  program_id: string;
  partner_id: string;
  link_id: string;
  param: string;
  value: string;
  url: string;
}

/** `GET /r/{slug}`: answers 302 with the tracked address once the click is durable. It needs no key. */
export function mountShortLinks(app: FastifyInstance, store: Store, services: Services): void {
  app.route<{ Params: { slug: string } }>({
    method: 'GET',
    url: '/r/:slug',
    exposeHeadRoute: false,
    schema: { hide: true } as object,
    handler: async (request, reply) => {
      const followed = await linkOf(store, request.params.slug);
      const visitor_token = visitorOf(request) ?? randomBytes(18).toString('base64url');
      await follow(store, services, followed, visitor_token, request);
      const secure = services.base_url.startsWith('https:') ? '; Secure' : '';
      return reply
        .header(
          'Set-Cookie',
          `${cookie}=${visitor_token}; Path=/r; Max-Age=${cookie_days * 86_400}; HttpOnly; SameSite=Lax${secure}`,
        )
        .header('Cache-Control', 'no-store')
        .redirect(followed.url, 302);
    },
  });
}

/** Slugs are unique over all tenants, so this alone is asked without one. @throws Problem resource_not_found */
async function linkOf({ database }: Store, slug: string): Promise<Followed> {
  const [found] = await run<Followed>(
    database,
    sql`
      select l.organization_id, l.program_id, l.partner_id, l.id as link_id, l.param, l.value, l.url
      from program.link l
      join program.partner p on p.organization_id = l.organization_id and p.id = l.partner_id
      where l.short_slug = ${slug} and l.deleted_at is null and p.deleted_at is null`,
  );
  if (!found) throw new Problem('resource_not_found', 'This link does not exist any more.');
  return found;
}

async function follow(
  store: Store,
  services: Services,
  of: Followed,
  visitor_token: string,
  request: FastifyRequest,
): Promise<void> {
  const { organization_id, url, ...credited } = of;
  await transaction(store, { organization_id, request_id: request.id }, (tx) =>
    recordClick(tx, {
      ...credited,
      id: newId('clk'),
      landing_url: url,
      visitor_token,
      referer: request.headers.referer?.slice(0, 2048),
      user_agent: request.headers['user-agent']?.slice(0, 1024),
      ip_hash: services.vault.hash(request.ip),
    }),
  );
}

/** The visitor's token, where the browser brings a whole one. */
function visitorOf({ headers }: FastifyRequest): string | undefined {
  return new RegExp(`(?:^|; *)${cookie}=([\\w-]{24})(?:;|$)`).exec(headers.cookie ?? '')?.[1];
}
