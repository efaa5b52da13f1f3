import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { DeletedMarker } from '../../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { type States, statusSchema } from '../../core/resource/states.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { event } from '../events/event.ts';
import { program_id } from '../events/fields.ts';
import { links } from '../partners/link.ts';
import { partners } from '../partners/partner.ts';
import { programs } from '../programs/program.ts';
import { totalOf } from '../programs/tally.ts';

export const tracked_by_values = ['link', 'coupon', 'manual', 'api'] as const;

/** `release`: the credit can move to another partner, or end as a self-referral. */
export const referral_states: States<'visit' | 'lead' | 'converted', 'release' | 'sign_up' | 'convert'> = {
  visit: { doc: 'the visitor clicked', on: { release: 'visit', sign_up: 'lead', convert: 'converted' } },
  lead: { doc: 'the visitor signed up', on: { convert: 'converted' } },
  converted: { doc: 'the visitor made the first payment', on: {} },
};

export const referrals = resource({
  object: 'referral',
  plural: 'referrals',
  table: 'program.referral',
  unique: { referral_one_a_visitor: null },
  total: totalOf('referral'),
  doc: 'A visitor referred by a partner, from the first visit to the first payment.',
  soft_delete: true,
  relations: { partner: partners, link: links },
  fields: {
    id: id('ref'),
    object: objectName('referral'),
    program_id,
    partner_id: id('part'),
    link_id: id('lnk')
      .nullable()
      .describe("The link that the visitor followed. Null if the visitor used the partner's handle."),
    landing_url: text.nullable().describe('The URL of the page where the visitor first arrived. Null if unknown.'),
    utm: z.json().describe('The `utm_*` parameters of the landing page, without the prefix. Null if there are none.'),
    tracked_by: z
      .enum(tracked_by_values)
      .describe(
        'How the referral was attributed: `link` (a link or handle), `coupon`, `manual`, or `api` (an id in a request).',
      ),
    status: statusSchema(referral_states),
    expires_at: timestamp.describe(
      "When the attribution window ends: the program's `cookie_days` after the last credited click. A later sign-up is not credited to the partner.",
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
    summary: 'Deletes a referral, for example because of fraud. Its customer stays with the partner.',
    params: idParams,
    body: z
      .strictObject({
        reason: text.min(1).max(200).default('deleted_by_hand').describe('The reason that `referral.deleted` reports.'),
      })
      .prefault({}),
    reply: DeletedMarker,
    async run({ tx, params, body }) {
      await deleteReferral(tx, await referrals.get(tx, params.id, { lock: true }), body.reason);
      return { id: params.id, object: 'referral', deleted: true as const };
    },
  }),
];

/** Deletes a referral and emits `referral.deleted`. */
export async function deleteReferral(tx: Tx, referral: Referral, reason: string): Promise<void> {
  await referrals.update(tx, referral.id, { deleted_at: tx.now, deleted_reason: reason });
  tx.emit(event('referral.deleted', referral, { reason }));
}
