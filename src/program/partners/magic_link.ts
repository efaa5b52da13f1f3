import { randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import sql from 'sql-template-tag';
import { z } from 'zod';
import { sha256 } from '../../core/encryption/vault.ts';
import { sendPlainPage } from '../../core/formats/plain_page.ts';
import { declareUnique } from '../../core/postgres/errors.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { statusesThat } from '../../core/resource/states.ts';
import { id, objectName, timestamp } from '../../core/values/fields.ts';
import { partner_states, partners } from './partner.ts';

declareUnique('magic_link', { magic_link_by_token: null });

const lifetime_minutes = 15;

const MagicLink = z
  .object({
    object: objectName('magic_link'),
    partner_id: id('part'),
    url: z
      .url()
      .describe('A single-use URL to sign in with. The portal is not part of this version: the page there says so.'),
    expires_at: timestamp,
  })
  .meta({ id: 'MagicLink', description: 'A single-use URL for a partner to sign in with, valid for 15 minutes.' });

export const magicLinkOperations: Operation[] = [
  operation({
    name: 'partners.create_magic_link',
    method: 'POST',
    path: '/v1/partners/{id}/magic_link',
    scope: 'partners:write',
    summary: 'Creates a single-use URL for the partner to sign in with, valid for 15 minutes.',
    doc: 'This version has no partner portal: the URL shows a page that says so and does not use up the token, so do not send it to partners yet. Anyone with the URL can sign in as the partner, so share it with the partner only. Rail stores only a hash of the token.',
    params: idParams,
    reply: MagicLink,
    status: 201,
    async run({ tx, params, services }) {
      const { id: partner_id } = await partners.get(tx, params.id);
      const token = randomBytes(32).toString('base64url');
      const expires_at = new Date(Date.parse(tx.now) + lifetime_minutes * 60_000).toISOString();
      await insert(tx, 'program.magic_link', {
        partner_id,
        token_sha256: sha256(token),
        expires_at,
        created_at: tx.now,
      });
      const url = `${services.base_url}/portal/sign_in?token=${token}`;
      return { object: 'magic_link' as const, partner_id, url, expires_at };
    },
  }),
];

const no_portal = {
  title: 'The partner portal is not available yet',
  text: 'This link is for signing in to the partner portal, which this service does not have yet. Ask the company that sent it to you about your links, your balance and your statements.',
};

/** Serves a page at the URL of magic links while there is no portal. It does not read the token, which stays unused. */
export const mountSignIn = (app: FastifyInstance): void => {
  app.get('/portal/sign_in', async (_, reply) =>
    sendPlainPage(reply.header('Cache-Control', 'no-store'), 200, no_portal),
  );
};

/**
 * Redeems a magic link's token, once and before it expires. Of two concurrent attempts one succeeds.
 * @returns the partner, or undefined where the token is unknown, used or expired, or the partner's status does not allow to sign in
 */
export const redeemMagicLink = (
  tx: Tx,
  token: string,
): Promise<{ organization_id: string; partner_id: string } | undefined> =>
  tx.maybe(sql`
    update program.magic_link m
    set used_at = ${tx.now}::timestamptz
    from program.partner p
    where m.token_sha256 = ${sha256(token)} and m.used_at is null and m.expires_at > ${tx.now}::timestamptz
      and p.organization_id = m.organization_id and p.id = m.partner_id
      and p.deleted_at is null and p.status = any(${statusesThat(partner_states, 'sign_in')})
    returning m.organization_id, m.partner_id`);
