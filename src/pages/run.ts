/** Runs operations for a page: the code, the checks, the events and the entry in the audit log of a request to the API. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { sha256 } from '../core/encryption/vault.ts';
import { formatOf } from '../core/formats/format.ts';
import { withinDeadline } from '../core/http/deadline.ts';
import { idempotentRequest, keepReply, storedReply } from '../core/http/idempotency.ts';
import { askOutside, nounOf, runLogged, streamOf } from '../core/http/request.ts';
import { sendStream } from '../core/http/row_streams.ts';
import { unstorableText } from '../core/postgres/errors.ts';
import { lagging, type Store, type Tx, transaction } from '../core/postgres/transaction.ts';
import type { Caller, Operation } from '../core/resource/operation.ts';
import { requireScope } from '../core/resource/scope.ts';
import type { Services } from '../core/resource/services.ts';
import { withoutAbsent } from '../core/values/absent.ts';
import { correctDetails } from '../core/values/detail.ts';
import { notFound, Problem } from '../core/values/problem.ts';
import { pathOfUnstorable } from '../core/values/texts/stored_text.ts';
import { validationProblem } from '../core/values/validation.ts';
import { counts_to } from './format.ts';

/** The input of an operation, as JSON would have it. */
export interface Input {
  params?: object;
  query?: object;
  body?: object;
}

/** Somebody who asks for a page, and with what their operations run. */
export interface Visit {
  request: FastifyRequest;
  caller: Caller;
  store: Store;
  services: Services;
  operations: Map<string, Operation>;
  /** An operation of a partner that has to see rows of others, such as whether a value is taken: the page gives it no id but the partner's. */
  sees_organization?: true;
}

/** How often, and for how long, the reply to a form that was sent a moment before is waited for. */
const look_ms = 200;
const most_looks = 25;

// biome-ignore lint/suspicious/noExplicitAny: a reply of whatever operation
export type Reply = any;

/** A value in place of a problem of a status: of what is not there (404), or of what was typed wrong (400). */
export const insteadOf =
  <Value>(status: number, value: Value) =>
  (error: unknown): Value => {
    if (error instanceof Problem && error.status === status) return value;
    throw error;
  };

/** The problem of an input, which a page says beside it. */
export function problemOfInput(error: unknown): Problem {
  if (error instanceof Problem && error.status === 400) return error;
  throw error;
}

/** Runs a GET by its name, in the page's transaction. */
export type Use = (name: string, input?: Input) => Promise<Reply>;

/** @throws Error where there is none of this name */
export function operationOf({ operations }: Visit, name: string): Operation {
  const found = operations.get(name);
  if (!found) throw new Error(`There is no operation ${name}.`);
  return found;
}

/** Reads what a page shows, in one transaction that writes nothing. `use` runs the GETs of the API in it. */
export function read<Result>(visit: Visit, work: (use: Use, tx: Tx) => Promise<Result>): Promise<Result> {
  const { request, caller, store, services } = visit;
  const { organization_id, partner_id } = caller;
  return withinDeadline(request, 'pages', (asked) =>
    transaction(
      lagging(store),
      { organization_id, partner_id, request_id: request.id, only_reads: true, one_state: true, asked },
      (tx) =>
        work(async (name, input = {}) => {
          const operation = operationOf(visit, name);
          // A GET that writes what is due by now has a transaction of its own.
          if (operation.writes) return perform(visit, name, input);
          const given = check(visit, operation, input);
          return operation.run({ ...given, tx, caller, services, counts_to, asked: undefined, ahead: undefined });
        }, tx),
    ),
  );
}

/**
 * Runs an operation by its name, in a transaction of its own.
 * @param form_key names a form that was sent: sent again, its first reply is returned and nothing is done twice
 * @param refusal why nothing more can be done by now: not of a form that was done before
 * @throws Problem as the API would answer
 */
export async function perform(
  visit: Visit,
  name: string,
  input: Input,
  form_key?: string,
  refusal?: Problem,
): Promise<Reply> {
  for (let tries = 1; ; tries++) {
    try {
      return await performOnce(visit, name, input, form_key, refusal);
    } catch (error) {
      // The first click is still being worked on: the second gets its reply.
      const is_in_flight = error instanceof Problem && error.code === 'idempotency_key_in_flight';
      if (!is_in_flight || tries > most_looks) throw error;
      await sleep(look_ms);
    }
  }
}

async function performOnce(
  visit: Visit,
  name: string,
  input: Input,
  form_key: string | undefined,
  refusal: Problem | undefined,
): Promise<Reply> {
  const { request, caller, services } = visit;
  const operation = operationOf(visit, name);
  const given = check(visit, operation, input);
  const { organization_id } = caller;
  const partner_id = visit.sees_organization ? undefined : caller.partner_id;
  const raw = Buffer.from(JSON.stringify(input));
  const sent_before =
    form_key === undefined
      ? undefined
      : idempotentRequest(caller.api_key_id, 'POST', name, ownKey(caller, form_key, raw), raw);
  return withinDeadline(request, nounOf(operation), async (asked) => {
    const { store } = visit;
    const { rejection, found } = await askOutside({ caller, ...given, request_id: request.id }, operation, {
      store,
      services,
      asked,
    });
    const { ahead } = operation;
    const options = {
      ...{ organization_id, partner_id, request_id: request.id, asked },
      ...{ one_state: operation.may_lag, only_reads: operation.method === 'GET' && !operation.writes },
      idempotency_key: sent_before?.key,
      ahead: ahead && ((tx: Tx) => ahead({ ...given, tx })),
    };
    const outcome = await transaction(store, options, async (tx) => {
      const first = sent_before && storedReply(tx, sent_before, services.vault);
      if (first) return JSON.parse(first.body);
      if (refusal) throw refusal;
      if (rejection) throw rejection;
      const result = await runLogged(tx, operation, { caller, services, ...given, asked: found });
      if (!(result instanceof Problem) && sent_before)
        keepReply(tx, sent_before, { status: operation.status, body: JSON.stringify(result) }, services.vault);
      return result;
    });
    if (outcome instanceof Problem) throw outcome;
    return outcome;
  });
}

/**
 * The key of a form among those of its organization, of which no other request has one: else whoever fills in a form could take the `Idempotency-Key` that
 * a request to the API will come with. Who goes back to a form and types something else sends another one.
 */
const ownKey = ({ api_key_id }: Caller, form_key: string, input: Buffer): string =>
  `form_${sha256(JSON.stringify([api_key_id, form_key]), input).toString('hex')}`;

/** Sends all rows of a list, or the file of an operation, as the API does. */
export function sendFile(visit: Visit, reply: FastifyReply, name: string, input: Input): Promise<FastifyReply> {
  const { request, caller, store, services } = visit;
  const operation = operationOf(visit, name);
  const given = { ...check(visit, operation, input), caller, services };
  const format = operation.file?.only
    ? (Object.keys(operation.file.media_types)[0] as string)
    : formatOf((given.query as { format?: string }).format, undefined, operation.file?.media_types);
  if (format === 'json') throw notFound('file', name);
  const streamed = streamOf(operation, given, format);
  return sendStream(request, reply, { ...streamed, caller, store: lagging(store), kind: nounOf(operation) });
}

/** All that is wrong with an input, for a form that says each beside its field. As a problem of the API it is the first. */
export class InputProblem extends Problem {
  readonly all: Problem[];
  constructor(all: Problem[]) {
    const { code, message, details } = all[0] as Problem;
    super(code, message, details);
    this.all = all;
  }
}

/** The problems that a form has to say. */
export const problemsIn = (problem: Problem | undefined): Problem[] =>
  problem instanceof InputProblem ? problem.all : problem ? [problem] : [];

/** @throws Problem insufficient_scope, or what is wrong with the input */
export function check({ caller }: Visit, operation: Operation, { params = {}, query = {}, body }: Input) {
  for (const scope of [operation.scope, ...(operation.further_scopes ?? [])]) requireScope(caller.scopes, scope);
  const unstorable = pathOfUnstorable({ params, query, body });
  if (unstorable) throw unstorableText(unstorable.at(-1) ?? '');
  const sent = structuredClone(body);
  if (sent && operation.details) correctDetails(sent, operation.details);
  const creates = operation.method !== 'PATCH' && operation.method !== 'GET';
  return {
    params: parsed(operation, 'params', params) as Record<string, string>,
    query: parsed(operation, 'query', query),
    body:
      operation.method === 'GET'
        ? undefined
        : parsed(operation, 'body', creates ? withoutAbsent(operation.body, sent) : sent),
  };
}

function parsed(operation: Operation, part: 'params' | 'query' | 'body', input: unknown): unknown {
  const { error, data } = operation[part].safeParse(input ?? undefined);
  if (error) {
    const place = part === 'query' ? 'querystring' : part;
    throw new InputProblem(error.issues.map((issue) => validationProblem({ issues: [issue] }, place, input)));
  }
  return data;
}
