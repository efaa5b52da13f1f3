/** A partner who asks for a page: every read of theirs runs as the role `rail_partner`, and sees their rows alone. */
import type { FastifyRequest } from 'fastify';
import type { Session } from '../core/access/session.ts';
import type { Tx } from '../core/postgres/transaction.ts';
import { allows } from '../core/resource/states.ts';
import { Problem } from '../core/values/problem.ts';
import type { Reader } from '../pages/format.ts';
import { SignInFirst } from '../pages/person.ts';
import { perform, type Reply, read, type Use, type Visit } from '../pages/run.ts';
import { type Partner, partner_states, partners } from '../program/partners/partner.ts';
import { mustAccept } from '../program/partners/terms.ts';
import { type Program, programs } from '../program/programs/program.ts';
import { textsIn, wantedLanguage } from './texts/languages.ts';
import type { PortalTexts } from './texts/texts.ts';

export interface PortalVisit extends Visit {
  session: Session;
  partner_id: string;
}

/** Makes the visit of a request. @throws SignInFirst */
export type Visiting = (request: FastifyRequest) => PortalVisit;

export type Serving = Pick<PortalVisit, 'store' | 'services' | 'operations'>;

/** The scopes of a partner in the operations that the portal runs: the portal decides which those are. */
const scopes = ['*:read', 'partners:write', 'links:write', 'sales:write', 'webhooks:write', 'applications:write'];

/** The partner waits for a decision on the application: only home, emails and terms are open. */
export class WaitFirst extends Error {}
const open_to_pending = ['/portal', '/portal/notifications', '/portal/sessions', '/portal/terms'];

/** @throws SignInFirst */
export function visitOf(request: FastifyRequest, serving: Serving): PortalVisit {
  const { session } = request;
  if (!session) throw new SignInFirst();
  const { organization_id, id } = session;
  const partner_id = session.partner_id as string;
  return {
    ...serving,
    request,
    session,
    partner_id,
    caller: { organization_id, api_key_id: id, partner_id, mode: 'live', scopes },
  };
}

/** The partner, the program, and how the partner reads. */
export interface Me {
  partner: Partner;
  program: Program;
  texts: PortalTexts;
  reader: Reader;
  must_accept: boolean;
}

/** Reads what a page shows. `use` runs GETs of the API. @throws SignInFirst, WaitFirst as the partner's status is by now */
export const readPage = <Result extends object>(
  visit: PortalVisit,
  work: (use: Use, me: Me, tx: Tx) => Promise<Result>,
): Promise<Result & { me: Me }> =>
  read(visit, async (use, tx) => {
    const me = await meOf(tx, visit);
    return { ...(await work(use, me, tx)), me };
  });

/** The languages of partners whose page is being read: what goes wrong then is said in theirs. */
const languages = new WeakMap<FastifyRequest, string>();

/** The partner's language, once it is known; else that of the browser. */
export const languageOf = (request: FastifyRequest): string =>
  languages.get(request) ?? wantedLanguage(null, request.headers['accept-language']);

async function meOf(tx: Tx, { partner_id, request }: PortalVisit): Promise<Me> {
  const partner = await partners.get(tx, partner_id).catch((error: unknown) => {
    throw error instanceof Problem && error.status === 404 ? new SignInFirst() : error;
  });
  if (!allows(partner_states, partner.status, 'sign_in')) throw new SignInFirst();
  if (partner.status === 'pending' && !open_to_pending.includes(request.routeOptions.url ?? '')) throw new WaitFirst();
  const program = await programs.get(tx, partner.program_id);
  const language = wantedLanguage(partner.language_code, request.headers['accept-language']);
  languages.set(request, language);
  const reader = { language, time_zone: program.timezone };
  return { partner, program, texts: textsIn(language), reader, must_accept: mustAccept(program, partner) };
}

/**
 * Runs an operation that has to see rows of others: whether a value is taken, or whose a sale is. The caller gives it no id but those of the partner, and
 * shows nothing of the reply that is not theirs.
 */
export const performBeyond = (
  visit: PortalVisit,
  name: string,
  body: object,
  form_key?: string,
  refusal?: Problem,
): Promise<Reply> => perform({ ...visit, sees_organization: true }, name, { body }, form_key, refusal);

/** A partner has as many of something as they may have. */
export const enough = (is_enough: boolean): Problem | undefined =>
  is_enough ? new Problem('plan_limit_reached', 'The partner has as many as they may have.') : undefined;
