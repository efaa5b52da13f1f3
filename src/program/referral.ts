import { z } from 'zod';
import { id, objectName, text, timestamp } from '../core/fields.ts';
import { type Operation, readOperations } from '../core/operation.ts';
import { resource } from '../core/resource.ts';
import type { Tx } from '../core/transaction.ts';
import { update } from '../core/write.ts';
import { event } from './event.ts';
import { link } from './link.ts';
import { partner } from './partner.ts';
import { program } from './program.ts';

export const tracked_by = ['link', 'coupon', 'manual', 'api'] as const;
const statuses = ['visit', 'lead', 'converted'] as const;

export const referral = resource({
  object: 'referral',
  plural: 'referrals',
  table: 'program.referral',
  doc: 'A visitor whom a partner brought, from the visit to the first payment.',
  soft_delete: true,
  relations: { partner, link },
  fields: {
    id: id('ref'),
    object: objectName('referral'),
    program_id: id('prg'),
    partner_id: id('part'),
    link_id: id('lnk').nullable(),
    landing_url: text.nullable(),
    utm: z.json().describe('The `utm_*` parameters of the landing page, without the prefix. Null: none.'),
    tracked_by: z.enum(tracked_by),
    status: z.enum(statuses),
    expires_at: timestamp,
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type Referral = z.infer<typeof referral.record>;

export const referralOperations: Operation[] = readOperations({
  of: referral,
  within: program,
  by: ['status', 'partner_id', 'link_id'],
});

/** Ends a referral and tells `referral.deleted`. */
export async function deleteReferral(
  tx: Tx,
  { id: referral_id, program_id, partner_id }: Referral,
  reason: string,
): Promise<void> {
  await update(tx, 'program.referral', referral_id, { deleted_at: tx.now });
  tx.emit(event('referral.deleted', program_id, { referral_id, partner_id, reason }));
}
