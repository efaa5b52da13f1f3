import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { DeletedMarker, idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { event } from '../events/catalogue.ts';
import { partners } from '../partners/partner.ts';
import { programs } from '../programs/program.ts';
import { totalOf } from '../programs/tally.ts';
import { links } from './link.ts';

export const tracked_by_values = ['link', 'coupon', 'manual', 'api'] as const;
const statuses = ['visit', 'lead', 'converted'] as const;

export const referrals = resource({
  object: 'referral',
  plural: 'referrals',
  table: 'program.referral',
  unique: { referral_one_a_visitor: null },
  total: totalOf('referral'),
  doc: 'A visitor whom a partner brought, from the visit to the first payment.',
  soft_delete: true,
  relations: { partner: partners, link: links },
  fields: {
    id: id('ref'),
    object: objectName('referral'),
    program_id: id('prg'),
    partner_id: id('part'),
    link_id: id('lnk').nullable().describe("The link that the visitor came by. Null: by the partner's handle."),
    landing_url: text.nullable().describe('The address that the visitor first arrived at. Null: not known.'),
    utm: z.json().describe('The `utm_*` parameters of the landing page, without the prefix. Null: none.'),
    tracked_by: z
      .enum(tracked_by_values)
      .describe(
        'How the partner came to the credit: by a link (or handle), a coupon, by hand, or by an id that a request named.',
      ),
    status: z.enum(statuses).describe('`visit`: somebody came. `lead`: signed up. `converted`: paid.'),
    expires_at: timestamp.describe(
      'Until when a sign-up counts for the partner: the last click that earned credit and `cookie_days` of the program.',
    ),
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type Referral = z.infer<typeof referrals.record>;

export const referralOperations: Operation[] = [
  ...readOperations({
    resource: referrals,
    within: programs,
    by: ['status', 'partner_id', 'link_id'],
  }),
  operation({
    name: 'referrals.delete',
    method: 'DELETE',
    path: '/v1/referrals/{id}',
    scope: 'referrals:write',
    summary: 'Deletes a referral, as for fraud. Customers who hang on it stay with their partner.',
    params: idParams,
    body: z
      .strictObject({
        reason: text
          .min(1)
          .max(200)
          .default('deleted_by_hand')
          .describe('What `referral.deleted` gives as the reason.'),
      })
      .prefault({}),
    reply: DeletedMarker,
    async run({ tx, params, body }) {
      await deleteReferral(tx, await referrals.get(tx, params.id, { lock: true }), body.reason);
      return { id: params.id, object: 'referral', deleted: true as const };
    },
  }),
];

/** Ends a referral and tells `referral.deleted`. */
export async function deleteReferral(
  tx: Tx,
  { id: referral_id, program_id, partner_id }: Referral,
  reason: string,
): Promise<void> {
  await referrals.update(tx, referral_id, { deleted_at: tx.now, deleted_reason: reason });
  tx.emit(event('referral.deleted', program_id, { referral_id, partner_id, reason }));
}
