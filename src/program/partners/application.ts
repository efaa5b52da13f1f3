import sql from 'sql-template-tag';
import { z } from 'zod';
import { authorOf } from '../../core/access/api_key.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { lockOf, resource, tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { type States, statusSchema, transition } from '../../core/resource/states.ts';
import { email, freeObject, id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { event } from '../events/event.ts';
import { program_id } from '../events/fields.ts';
import { program_states, programs } from '../programs/program.ts';
import { checkAnswers } from '../programs/questions.ts';
import { createPartner, person, queueForReview } from './create_partner.ts';
import { groups, groupToJoin } from './group.ts';
import { requireInvitation } from './group_invitation.ts';
import { changeHandle } from './handle.ts';
import { mailPartner } from './mails/mail_partner.ts';
import { type Partner, partner_states, partners } from './partner.ts';
import { acceptanceOf } from './terms.ts';

type Status = 'pending' | 'approved' | 'rejected' | 'withdrawn';

type Decision = 'approve' | 'reject' | 'withdraw';

export const application_states: States<Status, Decision> = {
  pending: { doc: 'waiting for a decision', on: { approve: 'approved', reject: 'rejected', withdraw: 'withdrawn' } },
  approved: {
    doc: 'the partner became active',
    on: {},
    refusal: 'The application is already approved. Only a pending application can be decided.',
  },
  rejected: {
    doc: 'the partner was declined',
    on: {},
    refusal: 'The application is already rejected. Only a pending application can be decided.',
  },
  withdrawn: {
    doc: 'the applicant withdrew, and the partner was declined',
    on: {},
    refusal: 'The application is already withdrawn. Only a pending application can be decided.',
  },
};

export const applications = resource({
  object: 'application',
  plural: 'applications',
  table: 'program.application',
  unique: { application_one_pending_a_partner: null },
  doc: 'A request to join a program as a partner. It stays in the review queue until it is decided.',
  relations: { partner: partners, group: groups },
  fields: {
    id: id('app'),
    object: objectName('application'),
    program_id,
    group_id: id('grp').nullable().describe('The group that the applicant asked to join.'),
    partner_id: id('part')
      .nullable()
      .describe('The applicant, as a partner. The partner is `pending` until the application is decided.'),
    email: text.describe("The applicant's email address."),
    answers: z.json().describe('The answers of the applicant, as submitted.'),
    source: text.nullable().describe('Where the applicant came from, as submitted. Null if not provided.'),
    status: statusSchema(application_states),
    reviewed_by_user_id: text
      .nullable()
      .describe(
        'The reviewer: the user whose API key was used (`usr_…`), or the key (`key_…`) if it belongs to no user. Null until approved or rejected.',
      ),
    reviewed_at: timestamp.nullable().describe('When the application was approved or rejected. Null until then.'),
    rejection_reason: text.nullable().describe('The reason given to the applicant. Null unless `rejected`.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type Application = z.infer<typeof applications.record>;

const reason = text.max(1000);

const Applicant = z.strictObject({
  program_id,
  ...person,
  terms_version: text
    .optional()
    .describe("The version of the program's terms that the applicant has accepted: its current `terms_version`."),
});

const Submission = Applicant.extend({
  answers: freeObject
    .default({})
    .describe("The answers, as a JSON object: to the program's `questions` by their `key`, and any others."),
  source: text.max(200).optional().describe('Where the applicant came from.'),
  group_invitation: text
    .max(1000)
    .optional()
    .describe(
      'The `token` of an invitation to the group, from `groups.create_invitation`. Required for a private group.',
    ),
});

export const applicationOperations: Operation[] = [
  ...readOperations({
    resource: applications,
    within: programs,
    by: ['status', 'partner_id', 'group_id'],
    filters: {
      email: {
        schema: email.optional(),
        where: (value: string) => sql`t.email_key = ${value.toLowerCase()}`,
        is_of_few: true,
      },
    },
  }),
  operation({
    name: 'applications.create',
    title: 'Submit an application',
    method: 'POST',
    path: '/v1/applications',
    scope: 'applications:write',
    summary: 'Submits an application and creates the applicant as a pending partner.',
    doc: "A paused program takes no applications. Those that were submitted before can still be decided. The answers to the program's `questions` are checked, and a private group needs a `group_invitation`; to add a partner to it yourself, create the partner. Somebody whose application was rejected or withdrawn can apply again with the same email address: the partner is pending again, and what the new application leaves out stays as it was.",
    body: Submission,
    reply: applications.schema,
    status: 201,
    errors: ['resource_already_exists', 'invalid_state_transition'],
    run: ({ tx, body, services }) => joinProgram(tx, services, body),
  }),
  operation({
    name: 'applications.approve',
    method: 'POST',
    path: '/v1/applications/{id}/approve',
    scope: 'applications:write',
    summary: 'Approves an application. The partner becomes active.',
    doc: 'Emits `application.approved`, then `affiliate.confirmed`.',
    params: idParams,
    body: z
      .strictObject({ reason: reason.optional().describe('Your note. `application.approved` includes it.') })
      .default({}),
    reply: applications.schema,
    errors: ['invalid_state_transition'],
    run: async ({ tx, params, body, caller }) =>
      approve(tx, params.id, await authorOf(tx, caller), body.reason ?? null),
  }),
  operation({
    name: 'applications.reject',
    method: 'POST',
    path: '/v1/applications/{id}/reject',
    scope: 'applications:write',
    summary: 'Rejects an application. The partner is declined.',
    doc: "Emits `application.rejected`, then `affiliate.updated`. The applicant sees the reason as you write it. If it is blank or omitted, the program's `default_rejection_reason` is used.",
    params: idParams,
    body: z
      .strictObject({
        reason: reason
          .nullable()
          .optional()
          .describe("The reason given to the applicant. Blank or null: the program's `default_rejection_reason`."),
      })
      .default({}),
    reply: applications.schema,
    errors: ['invalid_state_transition'],
    run: async ({ tx, params, body, caller }) => reject(tx, params.id, await authorOf(tx, caller), body.reason ?? ''),
  }),
  operation({
    name: 'applications.withdraw',
    method: 'POST',
    path: '/v1/applications/{id}/withdraw',
    scope: 'applications:write',
    summary: "Withdraws an application at the applicant's request. The partner is declined.",
    params: idParams,
    reply: applications.schema,
    errors: ['invalid_state_transition'],
    run: ({ tx, params }) => withdraw(tx, params.id),
  }),
];

type Applicant = z.infer<typeof Applicant> & { terms_accepted_at?: string };

/**
 * Takes the application of somebody who wants to join a program: by the API, or by the page `/join/{subdomain}`.
 * @throws Problem invalid_state_transition while the program is paused; missing_parameter, invalid_parameter for an answer, the terms or a private
 * group; resource_already_exists with the partner who has the email address or the handle
 */
export async function joinProgram(
  tx: Tx,
  { vault }: Pick<Services, 'vault'>,
  { answers, source, group_invitation, ...fields }: z.infer<typeof Submission>,
): Promise<Application> {
  const program = await programs.get(tx, fields.program_id, { param: 'program_id' });
  transition(program_states, program.status, 'join');
  checkAnswers(program.questions, answers);
  const group_id = await groupToJoin(tx, program.id, fields.group_id);
  await requireInvitation(tx, vault, { group_id, email: fields.email, token: group_invitation });
  const acceptance = fields.terms_version === undefined ? {} : acceptanceOf(program, fields.terms_version, tx.now);
  return submit(tx, await applicant(tx, { ...fields, ...acceptance }), { answers, source });
}

/**
 * The applicant as a pending partner with an application: a new partner, or the declined one who applies again.
 * @throws Problem resource_already_exists with the partner who has the email address and is not declined, or with who has the handle
 */
async function applicant(tx: Tx, fields: Applicant): Promise<Partner> {
  const { program_id, email } = fields;
  const declined = await partners.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program_id} and t.email_key = lower(${email}) and t.status = 'declined'`,
    lockOf(true),
  );
  if (declined) return applyAgain(tx, declined, fields);
  return createPartner(tx, {
    ...fields,
    group_id: await groupToJoin(tx, program_id, fields.group_id),
    status: 'pending',
  });
}

async function applyAgain(
  tx: Tx,
  declined: Partner,
  { email: _, handle = declined.handle, group_id, ...profile }: Applicant,
): Promise<Partner> {
  if (group_id !== undefined) await groupToJoin(tx, declined.program_id, group_id);
  await changeHandle(tx, declined, handle);
  const status = transition(partner_states, declined.status, 'apply');
  const partner = await partners.update(tx, declined.id, {
    ...profile,
    handle,
    group_id,
    status,
    decline_reason: null,
  });
  await queueForReview(tx, partner);
  tx.emit(event('affiliate.updated', partner, { reason: null }));
  return partner;
}

/** Stores the answers in the application of a new applicant, and emits `application.submitted`. */
async function submit(
  tx: Tx,
  partner: Partner,
  submission: { answers: object; source: string | undefined },
): Promise<Application> {
  const own = sql`${tenant(tx)} and t.partner_id = ${partner.id} and t.status = 'pending'`;
  await tx.all(sql`
    update program.application t set answers = ${JSON.stringify(submission.answers)}::jsonb, source = ${submission.source ?? null}
    where ${own}`);
  const application = (await applications.find(tx, own)) as Application;
  const { answers } = submission;
  tx.emit(event('application.submitted', partner, { application_id: application.id, answers: answers as never }));
  mailPartner(tx, partner.id, { kind: 'applied' });
  return application;
}

interface Review {
  partner: Partner;
  /** The application's status after the decision. */
  status: Application['status'];
}

/** Locks an application and its partner. @throws Problem invalid_state_transition when the application is already decided */
async function review(tx: Tx, application_id: string, decision: Decision): Promise<Review> {
  const application = await applications.get(tx, application_id, { lock: true });
  const status = transition(application_states, application.status, decision);
  return { status, partner: await partners.get(tx, application.partner_id as string, { lock: true }) };
}

async function approve(
  tx: Tx,
  application_id: string,
  reviewed_by: string,
  reason: string | null,
): Promise<Application> {
  const { partner, status } = await review(tx, application_id, 'approve');
  const application = await applications.update(tx, application_id, {
    status,
    reviewed_by_user_id: reviewed_by,
    reviewed_at: tx.now,
  });
  await partners.update(tx, partner.id, {
    status: transition(partner_states, partner.status, 'approve'),
    decline_reason: null,
  });
  tx.emit(event('application.approved', partner, { application_id, reviewed_by, reason }));
  tx.emit(event('affiliate.confirmed', partner));
  mailPartner(tx, partner.id, { kind: 'approved' });
  return application;
}

async function reject(tx: Tx, application_id: string, reviewed_by: string, note: string): Promise<Application> {
  const { partner, status } = await review(tx, application_id, 'reject');
  const reason = note.trim() === '' ? (await programs.get(tx, partner.program_id)).default_rejection_reason : note;
  const application = await applications.update(tx, application_id, {
    status,
    reviewed_by_user_id: reviewed_by,
    rejection_reason: reason,
    reviewed_at: tx.now,
  });
  const declined = await decline(tx, partner, reason);
  tx.emit(event('application.rejected', partner, { application_id, reviewed_by, reason }));
  tx.emit(event('affiliate.updated', declined, { reason }));
  mailPartner(tx, partner.id, { kind: 'rejected', application_id });
  return application;
}

async function withdraw(tx: Tx, application_id: string): Promise<Application> {
  const { partner, status } = await review(tx, application_id, 'withdraw');
  const application = await applications.update(tx, application_id, { status });
  const reason = 'withdrawn';
  tx.emit(event('affiliate.updated', await decline(tx, partner, reason), { reason }));
  return application;
}

const decline = (tx: Tx, partner: Partner, decline_reason: string): Promise<Partner> =>
  partners.update(tx, partner.id, { status: transition(partner_states, partner.status, 'decline'), decline_reason });
