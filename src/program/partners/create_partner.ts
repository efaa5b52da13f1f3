import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { country, email, id, language, metadata, text, url } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { alreadyExists } from '../../core/values/problem.ts';
import { event } from '../events/event.ts';
import { program_id } from '../events/fields.ts';
import { assessLater } from '../programs/assess_later.ts';
import { programs } from '../programs/program.ts';
import { groupToJoin } from './group.ts';
import { claimHandle, claimValue, deriveHandle, handle } from './handle.ts';
import { mailPartner } from './mails/mail_partner.ts';
import { type Partner, partners } from './partner.ts';
import { normaliseEmail } from './self_referral.ts';

/** The personal fields of a new partner, sent by a caller or an applicant. */
export const person = {
  email,
  first_name: text.max(200).optional().describe("The partner's first name."),
  last_name: text.max(200).optional().describe("The partner's last name."),
  company_name: text.max(200).optional().describe("The partner's company."),
  website_url: url.optional().describe("The partner's website or channel."),
  country_code: country.optional(),
  language_code: language
    .optional()
    .describe('ISO 639-1: the language of emails to the partner and of the portal. English if there is none in it.'),
  handle: handle
    .optional()
    .describe('The value of the tracking parameter, as in `?ref=ada`. The default is derived from the email address.'),
  group_id: id('grp')
    .optional()
    .describe("The group that the partner joins. The default is the program's default group."),
  invitation_token: text
    .min(1)
    .max(128)
    .optional()
    .describe(
      'The `rail_invitation` of the link that the partner came by: the `invitation_token` of a prospect of the recruitment service, who is seen to have joined. It is not returned, and has no other effect.',
    ),
};

export const createPartnerOperations: Operation[] = [
  operation({
    name: 'partners.create',
    method: 'POST',
    path: '/v1/partners',
    scope: 'partners:write',
    summary: 'Creates a partner.',
    doc: "The email address and the handle are unique in the program; letter case is ignored. A handle cannot be the value of another partner's link under one of the program's `url_params`. If one of them is taken, the response is 409 with the partner or the link under `existing`. Without a `handle`, one is derived from the email address.",
    body: z.strictObject({
      program_id,
      ...person,
      status: z
        .enum(['active', 'pending'])
        .default('active')
        .describe('With `pending`, an application is added to the review queue.'),
      metadata: metadata.optional(),
      send_welcome: z
        .boolean()
        .default(false)
        .describe('Whether an `active` partner is emailed a welcome, with the address of the portal and the terms.'),
    }),
    reply: partners.schema,
    status: 201,
    errors: ['resource_already_exists'],
    async run({ tx, body: { send_welcome, ...body } }) {
      await programs.get(tx, body.program_id, { param: 'program_id' });
      const group_id = await groupToJoin(tx, body.program_id, body.group_id);
      const partner = await createPartner(tx, { ...body, group_id });
      if (send_welcome && partner.status === 'active') mailPartner(tx, partner.id, { kind: 'welcome' });
      return partner;
    },
  }),
];

type NewPartner = Pick<Partner, 'program_id' | 'email' | 'status'> &
  Partial<Partner> & { invitation_token?: string | undefined };

/**
 * Creates a partner and emits `affiliate.created`. A handle that is not given is derived from the email address.
 * @throws Problem resource_already_exists with the partner that has the email address or the handle, or the link that has its value
 */
export async function createPartner(tx: Tx, fields: NewPartner): Promise<Partner> {
  const { program_id, email } = fields;
  const handle = fields.handle ?? (await deriveHandle(tx, program_id, email));
  const holder = fields.handle === undefined ? undefined : await claimValue(tx, program_id, handle);
  const row = { ...fields, id: newId('part'), handle, mailbox: normaliseEmail(email) };
  const partner = holder ? undefined : await partners.insert(tx, row, sql`on conflict do nothing`);
  if (!partner) {
    await refuseTaken(tx, fields);
    // Another transaction gave up the email address or the handle in the meantime.
    return createPartner(tx, fields);
  }
  if (partner.status === 'pending') await queueForReview(tx, partner);
  assessLater(tx, 'partner', partner.id);
  tx.emit(event('affiliate.created', partner));
  return partner;
}

async function refuseTaken(tx: Tx, { program_id, email, handle }: NewPartner): Promise<void> {
  const existing = await partners.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program_id} and t.email_key = lower(${email})`,
  );
  if (existing)
    throw alreadyExists('email', `A partner with the email '${email}' already exists in this program.`, existing);
  if (handle !== undefined) await claimHandle(tx, program_id, handle);
}

/** "Created with status `pending`, or by an applicant, a partner has an application in the review queue." */
export const queueForReview = (tx: Tx, { id: partner_id, program_id, group_id, email }: Partner) =>
  insert(tx, 'program.application', { id: newId('app'), program_id, group_id, partner_id, email });
