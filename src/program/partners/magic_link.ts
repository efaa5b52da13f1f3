import { randomBytes } from 'node:crypto';
import sql from 'sql-template-tag';
import { z } from 'zod';
import { sha256 } from '../../core/encryption/vault.ts';
import { declareUnique } from '../../core/postgres/errors.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { statusesThat } from '../../core/resource/states.ts';
import { id, objectName, timestamp } from '../../core/values/fields.ts';
import { partner_states, partners } from './partner.ts';

declareUnique('magic_link', { magic_link_by_token: null });

export const lifetime_minutes = 15;

const MagicLink = z
  .object({
    object: objectName('magic_link'),
    partner_id: id('part'),
    url: z
      .url()
      .describe('A single-use URL to sign in to the portal with. The page there has a button, which uses it up.'),
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
    doc: 'Anyone with the URL can sign in as the partner, so share it with the partner only. Opening it changes nothing: the page there has a button that uses it up, so that programs which check links in mails do not. Rail stores only a hash of the token. Partners can also ask for a link themselves, at `/portal/sign_in`.',
    params: idParams,
    reply: MagicLink,
    status: 201,
    async run({ tx, params, services }) {
      const { id: partner_id } = await partners.get(tx, params.id);
      const link = await createMagicLink(tx, tx.organization_id, partner_id, services.base_url);
      return { object: 'magic_link' as const, partner_id, ...link };
    },
  }),
];

/** Makes a link, and deletes those of the partner that expired a day ago. @returns its URL, which is stored nowhere, and when it expires */
export async function createMagicLink(
  tx: Tx,
  organization_id: string,
  partner_id: string,
  base_url: string,
): Promise<{ url: string; expires_at: string }> {
  const token = randomBytes(32).toString('base64url');
  const expires_at = new Date(Date.parse(tx.now) + lifetime_minutes * 60_000).toISOString();
  await tx.all(sql`
    with expired as (
      delete from program.magic_link m
      where m.organization_id = ${organization_id} and m.partner_id = ${partner_id}
        and m.created_at < ${tx.now}::timestamptz - interval '1 day'
    )
    insert into program.magic_link (organization_id, token_sha256, partner_id, expires_at, created_at)
    values (${organization_id}, ${sha256(token)}, ${partner_id}, ${expires_at}, ${tx.now})`);
  return { url: `${base_url}/portal/sign_in?token=${token}`, expires_at };
}

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
