/** Operations of partners that no key can run: they run as the API's operations are, with their checks and entries in the audit log, and not part of the API. */
import { z } from 'zod';
import { endSessionsOf } from '../core/access/session.ts';
import { idParams, type Operation, operation } from '../core/resource/operation.ts';
import { text } from '../core/values/fields.ts';
import { partners } from '../program/partners/partner.ts';
import { submitTaxForm, TaxFormFile } from '../program/partners/tax_form.ts';
import { acceptTerms } from '../program/partners/terms.ts';

const nothing = z.looseObject({});

export const portalOperations: Operation[] = [
  operation({
    name: 'partners.accept_terms',
    method: 'POST',
    path: '/portal/terms',
    scope: 'partners:write',
    summary: 'Accepts the terms of the program.',
    params: idParams,
    body: z.strictObject({ terms_version: text }),
    reply: partners.schema,
    run: ({ tx, params, body }) => acceptTerms(tx, params.id, body.terms_version),
  }),
  operation({
    name: 'partners.submit_tax_form',
    method: 'POST',
    path: '/portal/tax_form',
    scope: 'partners:write',
    summary: 'Hands in a tax form.',
    params: idParams,
    body: TaxFormFile,
    reply: nothing,
    run: ({ tx, params, body, services }) => submitTaxForm(tx, services, params.id, body),
  }),
  operation({
    name: 'sessions.end_others',
    method: 'POST',
    path: '/portal/sessions',
    scope: 'partners:write',
    summary: 'Ends all sessions of the partner but this one.',
    reply: nothing,
    async run({ tx, caller: { api_key_id: id, partner_id = null } }) {
      await endSessionsOf(tx, { id, user_id: null, partner_id }, 'others');
      return {};
    },
  }),
];
