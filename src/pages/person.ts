/** Who asks for a page: the cookie of a session, and where an unsafe request comes from. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { resumeSession, type Session } from '../core/access/session.ts';
import { withinDeadline } from '../core/http/deadline.ts';
import type { Store } from '../core/postgres/transaction.ts';
import { Problem } from '../core/values/problem.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The session of a page's visitor; null where there is none. */
    session: Session | null;
  }
}

/** Where a session is for: the two have cookies of their own, so that one browser can have both. */
export type Area = 'dashboard' | 'portal';

const names: Record<Area, string> = { dashboard: '__Host-rail', portal: '__Host-rail-portal' };

/** Only over https, or on this machine; not for scripts; not with a form of another site. */
const attributes = 'Path=/; HttpOnly; Secure; SameSite=Lax';

/** Sets the cookie of a session. It lasts as long as the session does, which the server decides. */
export const setCookie = (reply: FastifyReply, area: Area, token: string): FastifyReply =>
  reply.header('Set-Cookie', `${names[area]}=${token}; ${attributes}; Max-Age=${30 * 86_400}`);

export const clearCookie = (reply: FastifyReply, area: Area): FastifyReply =>
  reply.header('Set-Cookie', `${names[area]}=; ${attributes}; Max-Age=0`);

function cookieOf({ headers: { cookie = '' } }: FastifyRequest, area: Area): string | undefined {
  const prefix = `${names[area]}=`;
  const [found] = cookie.split('; ').filter((one) => one.startsWith(prefix));
  return found?.slice(prefix.length);
}

/** Reads forms, and refuses those that do not come from a page of this service; leads from addresses with a slash at the end to those without. For the routes that are added to `scope`. */
export function takeForms(scope: FastifyInstance, base_url: string): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    async (_: FastifyRequest, body: string) => new URLSearchParams(body),
  );
  scope.addHook('onRequest', async (request, reply) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return requireOwnOrigin(request, base_url);
    // People type a slash at the end of an address.
    const [path = '', ...query] = request.url.split('?');
    if (path.endsWith('/')) return reply.redirect([path.slice(0, -1), ...query].join('?'), 301);
  });
}

/** A browser says where a form comes from. @throws Problem form_not_allowed */
function requireOwnOrigin({ headers, host }: FastifyRequest, base_url: string): void {
  const { origin, 'sec-fetch-site': site } = headers;
  const is_own = origin === undefined ? site === 'same-origin' : isOwn(origin, host, new URL(base_url));
  if (is_own && (site === undefined || site === 'same-origin')) return;
  throw new Problem(
    'form_not_allowed',
    'The form was not sent from a page of this service. Open the page again, and send it from there.',
  );
}

/** Whoever is in the network of a visitor can answer for the host without TLS. */
function isOwn(origin: string, host: string, base: URL): boolean {
  const from = URL.parse(origin);
  if (!from || (base.protocol === 'https:' && from.protocol !== 'https:' && from.host === base.host)) return false;
  return from.host === base.host || from.host === host;
}

/** Nobody is signed in, or no longer may be. */
export class SignInFirst extends Error {}

/**
 * Reads the session of a request, once all of its form has come: whoever is removed while a slow form comes is nobody. It stays null where there is none.
 * For the routes that are added to `scope`.
 */
export function readSessions(scope: FastifyInstance, area: Area, { database }: Store): void {
  scope.addHook('preValidation', async (request) => {
    const token = cookieOf(request, area);
    if (token === undefined) return;
    const session = await withinDeadline(request, 'authentication', () => resumeSession(database, token));
    const is_of_area = session && (area === 'dashboard') === (session.user_id !== null);
    request.session = is_of_area ? session : null;
  });
}
