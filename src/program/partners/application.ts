import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import { type States, statusSchema, transition } from '../../core/resource/states.ts';
import { email, freeObject, id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { event } from '../events/catalogue.ts';
import { programs } from '../programs/program.ts';
import { totalOf } from '../programs/tally.ts';
import { groups, groupToJoin } from './group.ts';
import { createPartner, type Partner, partners, person } from './partner.ts';

type Status = 'pending' | 'approved' | 'rejected' | 'withdrawn';

export const application_states: States<Status, 'approve' | 'reject' | 'withdraw'> = {
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
  total: totalOf('application'),
  doc: 'A wish to become a partner, in the review queue until somebody decides.',
  relations: { partner: partners, group: groups },
  fields: {
    id: id('app'),
    object: objectName('application'),
    program_id: id('prg'),
    group_id: id('grp').nullable().describe('The group that the applicant asked to join.'),
    partner_id: id('part').nullable().describe('The applicant: a partner who is `pending` until this is decided.'),
    email: text.describe("The applicant's."),
    answers: z.json().describe('What the applicant answered, as it was given.'),
    source: text.nullable().describe('Where the applicant came from, as you said at the submission. Null: not said.'),
    status: statusSchema(application_states),
    reviewed_by_user_id: text.nullable().describe('Who decided: a user, or the API key (`key_…`) that did it.'),
    reviewed_at: timestamp.nullable().describe('When it was approved or rejected. Null: it was not.'),
    rejection_reason: text.nullable().describe('What the applicant was told. Null unless `rejected`.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type Application = z.infer<typeof applications.record>;

const reason = text.max(1000);

export const applicationOperations: Operation[] = [
  ...readOperations({
    resource: applications,
    within: programs,
    by: ['status', 'partner_id', 'group_id'],
    filters: {
      email: { schema: email.optional(), where: (value: string) => sql`t.email_key = ${value.toLowerCase()}` },
    },
  }),
  operation({
    name: 'applications.create',
    method: 'POST',
    path: '/v1/applications',
    scope: 'applications:write',
    summary: 'Submits an application; the applicant is a pending partner until it is decided.',
    body: z.strictObject({
      program_id: id('prg'),
      ...person,
      answers: freeObject.default({}).describe('The answers to your questions, in any shape.'),
      source: text.max(200).optional().describe('Where the applicant came from.'),
    }),
    reply: applications.schema,
    status: 201,
    errors: ['resource_already_exists'],
    async run({ tx, body }) {
      await programs.get(tx, body.program_id, { param: 'program_id' });
      const { answers, source, ...who } = body;
      const group_id = await groupToJoin(tx, body.program_id, body.group_id);
      const applicant = await createPartner(tx, { ...who, group_id, status: 'pending' });
      return submit(tx, applicant, { answers, source });
    },
  }),
  operation({
    name: 'applications.approve',
    method: 'POST',
    path: '/v1/applications/{id}/approve',
    scope: 'applications:write',
    summary: 'Approves an application: the partner is active.',
    doc: 'Tells `application.approved`, then `affiliate.confirmed`.',
    params: idParams,
    body: z
      .strictObject({ reason: reason.optional().describe('Your note: `application.approved` carries it.') })
      .default({}),
    reply: applications.schema,
    errors: ['invalid_state_transition'],
    run: ({ tx, params, body, caller }) => approve(tx, params.id, caller.api_key_id, body.reason ?? null),
  }),
  operation({
    name: 'applications.reject',
    method: 'POST',
    path: '/v1/applications/{id}/reject',
    scope: 'applications:write',
    summary: 'Rejects an application: the partner is declined.',
    doc: "The reason is shown to the applicant word for word; a blank one falls back to the program's `default_rejection_reason`.",
    params: idParams,
    body: z
      .strictObject({
        reason: reason
          .nullable()
          .optional()
          .describe("What the applicant reads, word for word. Blank: the program's `default_rejection_reason`."),
      })
      .default({}),
    reply: applications.schema,
    errors: ['invalid_state_transition'],
    run: ({ tx, params, body, caller }) => reject(tx, params.id, caller.api_key_id, body.reason ?? ''),
  }),
  operation({
    name: 'applications.withdraw',
    method: 'POST',
    path: '/v1/applications/{id}/withdraw',
    scope: 'applications:write',
    summary: "Withdraws an application, on the applicant's own wish: the partner is declined.",
    params: idParams,
    reply: applications.schema,
    errors: ['invalid_state_transition'],
    run: ({ tx, params }) => withdraw(tx, params.id),
  }),
];

/** Puts a pending partner's application into the review queue. */
async function submit(
  tx: Tx,
  applicant: Partner,
  given: { answers: object; source: string | undefined },
): Promise<Application> {
  const { id: partner_id, program_id, email: address, handle: taken } = applicant;
  await tx.all(sql`
    update program.application t set answers = ${JSON.stringify(given.answers)}::jsonb, source = ${given.source ?? null}
    where ${tenant(tx)} and t.partner_id = ${partner_id} and t.status = 'pending'`);
  const submitted = (await applications.find(
    tx,
    sql`${tenant(tx)} and t.partner_id = ${partner_id} and t.status = 'pending'`,
  )) as Application;
  const { answers } = given;
  tx.emit(
    event('application.submitted', program_id, {
      application_id: submitted.id,
      partner_id,
      email: address,
      handle: taken,
      answers: answers as never,
    }),
  );
  return submitted;
}

interface Review {
  before: Application;
  /** What the application's status becomes. */
  status: Application['status'];
  applicant: Partner;
}

/** The application and its applicant, locked. @throws Problem invalid_state_transition when it is decided */
async function underReview(tx: Tx, application_id: string, action: 'approve' | 'reject' | 'withdraw'): Promise<Review> {
  const before = await applications.get(tx, application_id, { lock: true });
  const status = transition(application_states, before.status, action);
  return { before, status, applicant: await partners.get(tx, before.partner_id as string, { lock: true }) };
}

async function approve(tx: Tx, application_id: string, reviewed_by: string, why: string | null): Promise<Application> {
  const { before, status, applicant } = await underReview(tx, application_id, 'approve');
  const after = await applications.update(tx, before.id, {
    status,
    reviewed_by_user_id: reviewed_by,
    reviewed_at: tx.now,
  });
  await partners.update(tx, applicant.id, { status: 'active', decline_reason: null });
  const { id: partner_id, program_id, email: address, handle: taken, group_id } = applicant;
  tx.emit(
    event('application.approved', program_id, {
      partner_id,
      application_id,
      email: address,
      handle: taken,
      reviewed_by,
      reason: why,
    }),
  );
  tx.emit(event('affiliate.confirmed', program_id, { partner_id, email: address, handle: taken, group_id }));
  return after;
}

async function reject(tx: Tx, application_id: string, reviewed_by: string, given: string): Promise<Application> {
  const { before, status, applicant } = await underReview(tx, application_id, 'reject');
  const why = given.trim() === '' ? (await programs.get(tx, before.program_id)).default_rejection_reason : given;
  const after = await applications.update(tx, before.id, {
    status,
    reviewed_by_user_id: reviewed_by,
    rejection_reason: why,
    reviewed_at: tx.now,
  });
  await partners.update(tx, applicant.id, { status: 'declined', decline_reason: why });
  const { id: partner_id, program_id, email: address, handle: taken } = applicant;
  tx.emit(
    event('application.rejected', program_id, {
      partner_id,
      application_id,
      email: address,
      handle: taken,
      reviewed_by,
      reason: why,
    }),
  );
  return after;
}

async function withdraw(tx: Tx, application_id: string): Promise<Application> {
  const { before, status, applicant } = await underReview(tx, application_id, 'withdraw');
  const after = await applications.update(tx, before.id, { status });
  await partners.update(tx, applicant.id, { status: 'declined', decline_reason: 'withdrawn' });
  tx.emit(
    event('affiliate.updated', before.program_id, {
      partner_id: applicant.id,
      status: 'declined',
      reason: 'withdrawn',
    }),
  );
  return after;
}
