/** A partner who asks for a page: every transaction of theirs runs as the role `rail_partner`, and sees their rows alone. */
import type { FastifyRequest } from 'fastify';
import type { Session } from '../core/access/session.ts';
import type { Visit } from '../pages/run.ts';

export interface PortalVisit extends Visit {
  session: Session;
  partner_id: string;
}

/** What a partner may do by the operations that the portal runs: the portal decides which those are. */
const scopes = ['*:read', 'partners:write', 'links:write', 'sales:write', 'webhooks:write', 'applications:write'];

export function visitOf(
  request: FastifyRequest,
  session: Session,
  serving: Pick<PortalVisit, 'store' | 'services' | 'operations'>,
): PortalVisit {
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
