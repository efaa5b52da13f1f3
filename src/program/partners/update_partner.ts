import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { changesOf } from '../../core/postgres/write.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { transition } from '../../core/resource/states.ts';
import { country, id, language, metadata, text, url } from '../../core/values/fields.ts';
import { minorNotNegative } from '../../core/values/money.ts';
import { Problem } from '../../core/values/problem.ts';
import { event } from '../events/event.ts';
import { groupToJoin } from './group.ts';
import { changeHandle, handle } from './handle.ts';
import { type Partner, partner_states, partners } from './partner.ts';
import { replaceTags } from './tag.ts';

const PartnerChanges = z
  .strictObject({
    first_name: text.max(200).nullable(),
    last_name: text.max(200).nullable(),
    company_name: text.max(200).nullable(),
    display_name: text.max(200).nullable(),
    website_url: url.nullable(),
    country_code: country.nullable(),
    language_code: language.nullable(),
    handle: handle.describe(
      "The partner's new handle. Clicks by the old one count for the partner for the program's `cookie_days`, and no other partner can take it meanwhile.",
    ),
    group_id: id('grp').nullable(),
    min_payout_minor: minorNotNegative.nullable(),
    status: z.enum(['active', 'suspended']).meta({
      description: '`suspended`: suspends the partner, who earns no new commissions. `active`: reinstates the partner.',
      examples: ['suspended'],
    }),
    suspension_reason: text
      .max(1000)
      .nullable()
      .describe('Your note on why the partner is suspended. Only allowed while suspended.'),
    tag_ids: z.array(id('tag')).max(100).describe("Replaces the partner's tags."),
    email_first_referral: z.boolean(),
    email_new_referral: z.boolean(),
    email_payout_paid: z.boolean(),
    metadata,
  })
  .partial();

type PartnerChanges = z.infer<typeof PartnerChanges>;

export const updatePartnerOperations: Operation[] = [
  operation({
    name: 'partners.update',
    method: 'PATCH',
    path: '/v1/partners/{id}',
    scope: 'partners:write',
    summary: 'Updates, suspends or reinstates a partner.',
    doc: 'To activate a pending partner, approve the application.',
    params: idParams,
    body: PartnerChanges,
    reply: partners.schema,
    errors: ['resource_already_exists', 'invalid_state_transition'],
    async run({ tx, params, body: { tag_ids, ...changes } }) {
      const partner = await partners.get(tx, params.id, { lock: true });
      const tags_changed = tag_ids !== undefined && (await replaceTags(tx, partner, tag_ids));
      return updatePartner(tx, partner, changes, tags_changed);
    },
  }),
];

/**
 * Changes a partner, whose row the caller has locked, and emits `affiliate.updated` if that changes something.
 * @throws Problem resource_already_exists, resource_not_found, invalid_state_transition, invalid_parameter
 */
export async function updatePartner(
  tx: Tx,
  before: Partner,
  changes: PartnerChanges,
  tags_changed = false,
): Promise<Partner> {
  const { handle = before.handle, group_id } = changes;
  await changeHandle(tx, before, handle);
  const suspension = suspensionOf(before, changes);
  if (typeof group_id === 'string') await groupToJoin(tx, before.program_id, group_id);
  const after = await partners.update(tx, before.id, {
    ...changes,
    ...suspension,
    ...(tags_changed ? { updated_at: tx.now } : {}),
  });
  if (!tags_changed && changesOf(before, after).length === 0) return after;
  tx.emit(event('affiliate.updated', after, { reason: after.suspension_reason }));
  return after;
}

/**
 * The status and the suspension's reason as the changes leave them: a reinstated partner has no reason.
 * @throws Problem invalid_state_transition for a pending or declined partner; invalid_parameter for a reason without a suspension
 */
function suspensionOf(
  partner: Partner,
  { status, suspension_reason }: PartnerChanges,
): Pick<PartnerChanges, 'status' | 'suspension_reason'> {
  if (status !== undefined) transition(partner_states, partner.status, status === 'active' ? 'reinstate' : 'suspend');
  if ((suspension_reason ?? null) !== null && (status ?? partner.status) !== 'suspended') {
    throw new Problem(
      'invalid_parameter',
      "'suspension_reason' is only allowed while the partner is suspended. Send it with the status 'suspended'.",
      { param: 'suspension_reason' },
    );
  }
  return { status, suspension_reason: status === 'active' ? null : suspension_reason };
}
