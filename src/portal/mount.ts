/** The routes of the portal: a partner signs in by a link, and sees what is theirs. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Store } from '../core/postgres/transaction.ts';
import type { Operation } from '../core/resource/operation.ts';
import type { Services } from '../core/resource/services.ts';
import { html } from '../pages/html.ts';
import { sendHtml } from '../pages/layout.ts';
import { readSessions, takeForms } from '../pages/person.ts';
import { read } from '../pages/run.ts';
import { mountSignIn, type SignInTexts } from '../pages/sign_in.ts';
import { redeemMagicLink } from '../program/partners/magic_link.ts';
import { visitOf } from './visit.ts';

export function mountPortal(app: FastifyInstance, store: Store, services: Services, operations: Operation[]): void {
  const serving = { store, services, operations: new Map(operations.map((one) => [one.name, one])) };
  void app.register(async (scope) => {
    takeForms(scope, services.base_url);
    readSessions(scope, 'portal', store);
    mountSignIn(scope, store, {
      area: 'portal',
      textsFor: () => sign_in_texts,
      async redeem(tx, token) {
        const found = await redeemMagicLink(tx, token);
        return found && { organization_id: found.organization_id, person: { partner_id: found.partner_id } };
      },
      task: 'program/mail_magic_links',
    });

    scope.get('/portal', async (request: FastifyRequest, reply) => {
      const { session } = request;
      if (!session) return reply.redirect('/portal/sign_in', 303);
      const visit = visitOf(request, session, serving);
      const partner = await read(visit, (use) => use('partners.get', { params: { id: visit.partner_id } }));
      return sendHtml(reply, 200, { title: partner.email, of: 'Rail', content: html`<p>${partner.status}</p>` });
    });
  });
}

const sign_in_texts: SignInTexts = {
  language: 'en',
  service: 'Partner portal',
  title: 'Sign in to the partner portal',
  press: 'Press the button to sign in. The link works once.',
  button: 'Sign in',
  ask: 'Type the email address that you are a partner with. If there is one, we send a link to sign in, which is valid for 15 minutes.',
  email: 'Email',
  send: 'Send me a link',
  sent: 'If the address is of a partner, a link is on its way. Look in your inbox, and in the folder for spam.',
  expired: 'This link was used, has expired, or is not complete. Ask for another one.',
  invalid_email: 'Type an email address, such as ada@example.com.',
  signed_out: 'You are signed out.',
};
