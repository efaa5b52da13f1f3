/** An application as the page to join a program takes it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { withinDeadline } from '../core/http/deadline.ts';
import { transaction } from '../core/postgres/transaction.ts';
import { Problem } from '../core/values/problem.ts';
import { check, operationOf, perform } from '../pages/run.ts';
import { mailLinks } from '../pages/sign_in.ts';
import type { Program } from '../program/programs/program.ts';
import { checkAnswers, type Question } from '../program/programs/questions.ts';
import { type Errors, errorsOf, one, type Typed, withScheme } from './fields.ts';
import type { PortalTexts } from './texts/texts.ts';
import type { Serving } from './visit.ts';

export interface Group {
  id: string;
  name: string;
  description: string | null;
  landing_url: string | null;
  is_private: boolean;
}

export interface Place {
  organization_id: string;
  program: Program;
  /** Null: the program's default group. */
  group: Group | null;
}

/** How the page is asked for, and in which language it answers. */
export interface Asked {
  address: string;
  /** The invitation to the group, and that of the recruitment service. */
  hidden: Record<string, string>;
  language: string;
  texts: PortalTexts;
}

const personal = ['email', 'first_name', 'last_name', 'company_name', 'website_url', 'country_code', 'language_code'];

/** An application that is kept takes a few ms less than one of somebody who is a partner already: both are answered after the same time. */
const answered_after_ms = 100;

/** @returns what is wrong with the form; undefined where the application is in */
export async function apply(
  serving: Serving,
  request: FastifyRequest,
  place: Place,
  asked: Asked,
  typed: Typed,
): Promise<Errors | undefined> {
  const [errors] = await Promise.all([applyOnce(serving, request, place, asked, typed), sleep(answered_after_ms)]);
  return errors;
}

async function applyOnce(
  serving: Serving,
  request: FastifyRequest,
  { organization_id, program, group }: Place,
  { hidden, texts, language }: Asked,
  typed: Typed,
): Promise<Errors | undefined> {
  const terms_version = one(typed, 'terms_version');
  const caller = { organization_id, api_key_id: '', mode: 'live' as const, scopes: ['applications:write'] };
  const given = (name: string) => (name === 'website_url' ? withScheme(one(typed, name)) : one(typed, name));
  const body = {
    program_id: program.id,
    ...Object.fromEntries(personal.flatMap((name) => (given(name) === undefined ? [] : [[name, given(name)]]))),
    answers: answersOf(program.questions, typed),
    source: 'join_page',
    ...(group === null ? {} : { group_id: group.id }),
    ...(hidden.invitation === undefined ? {} : { group_invitation: hidden.invitation }),
    ...(hidden.rail_invitation === undefined ? {} : { invitation_token: hidden.rail_invitation }),
    ...(program.terms_url === null || terms_version === undefined ? {} : { terms_version }),
  };
  const visit = { ...serving, request, caller };
  const said = (problem: unknown): Errors => {
    const names = [...personal, ...program.questions.map(({ key }) => `answers.${key}`), 'terms'];
    return errorsOf(
      problem,
      texts,
      names,
      { terms_version: 'terms', group_invitation: 'email' },
      { terms_version: texts.terms.changed, group_invitation: texts.join.other_address },
    );
  };
  const is_unaccepted = program.terms_url !== null && one(typed, 'terms') !== 'true';
  const errors: Errors = Object.assign(
    is_unaccepted ? { terms: texts.general.required } : {},
    ...[
      () => check(visit, operationOf(visit, 'applications.create'), { body }),
      ...program.questions.map((question) => () => checkAnswers([question], body.answers)),
    ].map((look) => errorOf(look, said)),
  );
  if (Object.keys(errors).length > 0) return errors;
  try {
    await perform(visit, 'applications.create', { body }, one(typed, 'form_key'));
    return undefined;
  } catch (problem) {
    if (!(problem instanceof Problem) || problem.code !== 'resource_already_exists') return said(problem);
    await remind(serving, request, { email: one(typed, 'email') as string, language });
    return undefined;
  }
}

function errorOf(look: () => unknown, said: (problem: unknown) => Errors): Errors {
  try {
    look();
    return {};
  } catch (problem) {
    return said(problem);
  }
}

/** Answers the same whether or not an address is of a partner: who has it gets a link to sign in. */
const remind = (
  { store }: Serving,
  request: FastifyRequest,
  { email, language }: { email: string; language: string },
): Promise<void> =>
  withinDeadline(request, 'pages', (asked) =>
    transaction(store, { organization_id: null, request_id: request.id, asked }, async (tx) => {
      mailLinks(tx, 'program/mail_magic_links', email, language);
    }),
  );

function answersOf(questions: readonly Question[], typed: Typed): Record<string, unknown> {
  const answers = questions.flatMap(({ key, kind, required }): [string, unknown][] => {
    const values = (typed[`answers.${key}`] ?? []).filter((value) => value.trim() !== '');
    if (kind === 'checkbox') {
      // A box that must be ticked and is not, is not answered.
      return required && values.length === 0 ? [] : [[key, values.includes('true')]];
    }
    if (values.length === 0) return [];
    const [value = ''] = values;
    if (kind === 'choices') return [[key, values]];
    return [[key, kind === 'url' ? withScheme(value.trim()) : value.replaceAll('\r\n', '\n')]];
  });
  return Object.fromEntries(answers);
}
