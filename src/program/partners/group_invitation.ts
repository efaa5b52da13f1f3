import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { email, id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { Problem } from '../../core/values/problem.ts';
import { programs } from '../programs/program.ts';
import { groups } from './group.ts';
import { normaliseEmail } from './self_referral.ts';

const GroupInvitation = z
  .object({
    object: objectName('group_invitation'),
    group_id: id('grp'),
    email: text.nullable().describe('The one address that can join by it. Null: any.'),
    token: text.describe('What `applications.create` takes as `group_invitation`.'),
    url: z.url().describe('The page to join the group by it.'),
    expires_at: timestamp,
  })
  .meta({
    id: 'GroupInvitation',
    description:
      'An invitation to join a group, private ones included. It is not stored, and cannot be revoked before it expires.',
  });

const sealed = z.object({
  group_id: z.string(),
  organization_id: z.string(),
  email: z.string().nullable(),
  expires_at: z.string(),
});

/** The context of the encryption, so that no other text that the service encrypted passes for an invitation. */
const context = 'group_invitation';

export const groupInvitationOperations: Operation[] = [
  operation({
    name: 'groups.create_invitation',
    method: 'POST',
    path: '/v1/groups/{id}/invitation',
    scope: 'groups:write',
    summary: 'Invites partners to a group: creates the URL of a page to join it.',
    doc: 'A private group can be joined by invitation only. An invitation without an `email` can be used by whoever has it, any number of times, until it expires.',
    params: idParams,
    body: z
      .strictObject({
        email: email.optional().describe('The one address that can join by it. The default: any.'),
        expires_in_days: z
          .int()
          .min(1)
          .max(365)
          .default(30)
          .describe('The number of days for which it can be used, 1 to 365.'),
      })
      .default({ expires_in_days: 30 }),
    reply: GroupInvitation,
    status: 201,
    async run({ tx, params, body, services: { vault, base_url } }) {
      const group = await groups.get(tx, params.id);
      const { subdomain } = await programs.get(tx, group.program_id);
      const expires_at = new Date(Date.parse(tx.now) + body.expires_in_days * 86_400_000).toISOString();
      const invitation = { group_id: group.id, email: body.email ?? null, expires_at };
      const plain = JSON.stringify({ ...invitation, organization_id: tx.organization_id });
      const token = vault.encrypt(plain, context).toString('base64url');
      const url = `${base_url}/join/${subdomain}/${group.slug}?invitation=${token}`;
      return { object: 'group_invitation' as const, ...invitation, token, url };
    },
  }),
];

interface Wish {
  group_id: string;
  /** The address of the person who wants to join. */
  email: string;
  token: string | undefined;
}

/** @throws Problem missing_parameter, invalid_parameter when the group is private and the invitation is none to it, of another address or expired */
export async function requireInvitation(tx: Tx, vault: Vault, { group_id, email, token }: Wish): Promise<void> {
  const { is_private } = await tx.one<{ is_private: boolean }>(sql`
    select t.is_private from ${groups.from} where ${tenant(tx)} and t.id = ${group_id}`);
  if (!is_private) return;
  const param = 'group_invitation';
  if (token === undefined) {
    const message =
      "The group is private: 'group_invitation' is required to join it. Create one with POST /v1/groups/{id}/invitation.";
    throw new Problem('missing_parameter', message, { param });
  }
  const invitation = invitationOf(vault, token);
  const is_valid =
    invitation?.group_id === group_id &&
    invitation.organization_id === tx.organization_id &&
    invitation.expires_at > tx.now;
  if (!is_valid)
    throw new Problem('invalid_parameter', 'The invitation to the group is not valid, or no longer.', { param });
  if (invitation.email !== null && normaliseEmail(invitation.email) !== normaliseEmail(email))
    throw new Problem('invalid_parameter', 'The invitation to the group is for another email address.', { param });
}

/** Reads an invitation; undefined where it is forged, or was made with a key that is gone. */
export function invitationOf(vault: Vault, token: string): z.infer<typeof sealed> | undefined {
  try {
    return sealed.parse(JSON.parse(vault.decrypt(Buffer.from(token, 'base64url'), context)));
  } catch {
    return undefined;
  }
}
