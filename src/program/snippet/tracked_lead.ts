/** A sign-up that a page reports: the customer whom `customers.create` makes of it, verified only where the merchant's server has signed. */
import { createHmac } from 'node:crypto';
import sql from 'sql-template-tag';
import { z } from 'zod';
import { sameText } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { perform } from '../../core/resource/perform.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { customerEmail, externalId } from '../../core/values/fields.ts';
import { Problem } from '../../core/values/problem.ts';
import { type Customer, customers } from '../customers/customer.ts';
import { referredBy, signUpOperation } from '../customers/sign_up.ts';
import { programs } from '../programs/program.ts';
import { findClick } from '../tracking/attribution.ts';
import type { UsableKey } from './publishable_key.ts';

/** Between two parts of what is signed: no part may have it. */
const separator = '|';
const signable = (text: string | undefined): boolean => text === undefined || !text.includes(separator);

export const TrackedLead = z
  .strictObject({
    key: z.string(),
    click_id: z.string().regex(/^clk_[a-z0-9]{26}$/, 'must be the id of a click, clk_…'),
    email: customerEmail.optional(),
    identifier: externalId.optional(),
    signature: z
      .string()
      .regex(/^[0-9a-f]{64}$/, 'must be an HMAC-SHA256 in lower-case hex')
      .optional(),
  })
  .refine(({ email, identifier }) => email !== undefined || identifier !== undefined, {
    path: ['email'],
    message: 'send an email, an identifier, or both',
  })
  .refine(({ signature, email, identifier }) => !signature || (signable(email) && signable(identifier)), {
    path: ['signature'],
    message: `cannot be of an email or identifier that has the character '${separator}': leave the signature out`,
  });

export type TrackedLead = z.infer<typeof TrackedLead>;

export interface LeadReply {
  object: 'tracked_lead';
  /** True if the visitor is a customer of a partner now. */
  recorded: boolean;
  /** True if the signature of this request holds. What other requests have signed is not told to who has the id of a click. */
  verified: boolean;
}

/** The signature of the merchant's server over the email and the identifier as the page sends them, and the click. */
export const signatureOf = (secret: string, { email = '', identifier = '', click_id }: Partial<TrackedLead>): string =>
  createHmac('sha256', secret).update([email, identifier, click_id].join(separator)).digest('hex');

/**
 * Records the sign-up of a visitor. Repeated, it changes nothing; a browser without a signature makes one customer of a visitor, and no more.
 * Why nothing is recorded is not said: pages are public.
 * @param sent as it came: the signature is of it
 * @throws Problem signature_invalid
 */
export async function trackLead(
  tx: Tx,
  { services, key, sent, body }: { services: Services; key: UsableKey; sent: TrackedLead; body: TrackedLead },
): Promise<LeadReply> {
  const { click_id, email, identifier, signature } = body;
  const verified = signature !== undefined;
  const secret = () => services.vault.decrypt(key.signing_secret, key.id);
  if (verified && !sameText(signature, signatureOf(secret(), sent))) {
    throw new Problem('signature_invalid', 'The signature does not match the email, the identifier and the click.', {
      param: 'signature',
    });
  }
  const program = await programs.get(tx, key.program_id);
  const click = await findClick(tx, program.id, click_id);
  const visitor = click && (await referredBy(tx, program, click));
  const before = visitor?.referred && (await customerOf(tx, visitor.referred.referral.id, body));
  if (before) {
    if (verified && !before.verified) await customers.update(tx, before.id, { verified });
    return { object: 'tracked_lead', recorded: true, verified };
  }
  const fields = {
    program_id: program.id,
    click_id,
    ...(email ? { email } : {}),
    ...(identifier ? { identifier } : {}),
  };
  const made = await perform<Customer>(tx, { operation: signUpOperation, by: key.id, services }, { body: fields });
  if (made instanceof Problem) return { object: 'tracked_lead', recorded: false, verified };
  if (!verified) await customers.update(tx, made.id, { verified });
  return { object: 'tracked_lead', recorded: true, verified };
}

/** The customer whom this lead would make again: of the same email and identifier, or any that a browser made of the visitor. */
const customerOf = (tx: Tx, referral_id: string, { email, identifier, signature }: TrackedLead) =>
  customers.find(
    tx,
    sql`${tenant(tx)} and t.referral_id = ${referral_id} and (
      (coalesce(lower(t.email) = lower(${email ?? null}::text), ${email === undefined})
        and coalesce(lower(t.identifier) = lower(${identifier ?? null}::text), ${identifier === undefined}))
      or (not t.verified and ${signature === undefined}))`,
    sql`for no key update of t`,
  );
