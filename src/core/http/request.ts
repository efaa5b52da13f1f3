/** Mounts operations, and makes one request one transaction. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ZodError } from 'zod';
import { logChange } from '../access/audit_log.ts';
import { authenticate, type Presented, requireRate } from '../access/authenticate.ts';
import { verifySignature } from '../encryption/signature.ts';
import { formatOf, type StreamFormat } from '../formats/format.ts';
import { fileOf } from '../formats/row_stream.ts';
import { addressOf } from '../net/client_address.ts';
import type { Asked } from '../pool/lending.ts';
import type { Database } from '../postgres/database.ts';
import { unstorableText } from '../postgres/errors.ts';
import { lagging, type Store, type Tx, together, transaction } from '../postgres/transaction.ts';
import { most_bulk_bytes } from '../resource/bulk.ts';
import { type Context, isLogged, type Member, type Operation, routePath } from '../resource/operation.ts';
import { requireMode, requireScope } from '../resource/scope.ts';
import type { Services } from '../resource/services.ts';
import { inSharedTransaction } from '../resource/shared_transaction.ts';
import { api_version } from '../values/api.ts';
import { databaseTime } from '../values/clock.ts';
import { withCorrections } from '../values/detail.ts';
import { Problem, problemThatCommits } from '../values/problem.ts';
import { pathOfUnstorable } from '../values/texts/stored_text.ts';
import { validationProblem } from '../values/validation.ts';
import { withinDeadline } from './deadline.ts';
import { idempotentRequest, keepReply, type Reply, storedReply } from './idempotency.ts';
import { type Streamed, sendStream } from './row_streams.ts';
import { refuseEmptyId, refuseWordsAsIds } from './unknown_path.ts';

/** Mounts operations: authentication, scope, signature, idempotency and the transaction are the same for all. */
export function mountOperations(app: FastifyInstance, operations: Operation[], store: Store, services: Services): void {
  for (const operation of operations) mount(app, operation, store, services);
  refuseWordsAsIds(app, operations);
}

function mount(app: FastifyInstance, operation: Operation, store: Store, services: Services): void {
  const source = operation.may_lag ? lagging(store) : store;
  const join = sharedTransactionOf(app, operation, { store, services });
  app.route({
    method: operation.method,
    url: routePath(operation.path),
    schema: routeSchema(operation),
    attachValidation: true,
    ...(operation.upload ? { bodyLimit: operation.upload.most_bytes } : {}),
    ...(operation.bulk_of ? { bodyLimit: most_bulk_bytes } : {}),
    config: { upload: operation.upload, details: operation.details, is_bulk: operation.bulk_of !== undefined },
    ...guards(store.database, operation),
    handler: async (request, reply) => {
      const streamed = streamAsked(request, operation, services);
      if (streamed) {
        const caller = request.presented as Presented;
        return sendStream(request, reply, { ...streamed, caller, store: source, kind: nounOf(operation) });
      }
      const release = operation.may_lag ? await claimReading(request, source) : undefined;
      // A read that is not waited for any longer keeps its place until it is cancelled.
      const { status, body, replayed } = await withinDeadline(request, nounOf(operation), (asked) =>
        answer(request, operation, { store: source, services, asked, join }).finally(release),
      );
      if (replayed) reply.header('Idempotent-Replayed', 'true');
      return reply.code(status).header('Content-Type', 'application/json; charset=utf-8').send(Buffer.from(body));
    },
  });
}

/** `sales` of `sales.create`. */
export const nounOf = ({ name }: Operation): string => name.split('.')[0] as string;

/** Waits until the organization may read at length, for no longer than an answer may take. What is wrong with the request is said at once. */
function claimReading(request: FastifyRequest, { database }: Store): Promise<() => void> {
  refuseInvalid(request);
  const { reading_limit, answer_ms } = request.server;
  return reading_limit.claim((request.presented as Presented).organization_id, database.options.max, answer_ms);
}

/** The hooks of a route that needs a key: who asks, how often, in which version, with which scope and mode, and signed as the key demands. */
export const guards = (
  database: Database,
  operation: Pick<Operation, 'scope' | 'further_scopes' | 'test_keys' | 'refuse_test_key'>,
) => ({
  onRequest: async (request: FastifyRequest) => {
    refuseEmptyId(request);
    request.presented = await identify(request, database);
    requireRate(request.presented.rate);
    requireVersion(request);
    for (const scope of [operation.scope, ...(operation.further_scopes ?? [])])
      requireScope(request.presented.scopes, scope);
    requireMode(request.presented, operation, request.params as object);
  },
  preValidation: async (request: FastifyRequest) => requireSignature(request, request.presented as Presented),
});

/** Returns the stream of a request for another format than JSON. Errors of the request are answered in JSON. */
function streamAsked(request: FastifyRequest, operation: Operation, services: Services): Streamed | undefined {
  const format = formatAsked(request, operation);
  if (format === 'json') return undefined;
  refuseInvalid(request);
  const { params, query } = request;
  return streamOf(
    operation,
    { caller: request.presented as Presented, services, params, query, body: undefined },
    format,
  );
}

/** The rows of an operation in a format, or its file. */
export function streamOf(
  { stream, file, is_feed }: Operation,
  given: Omit<Context<unknown, unknown, unknown>, 'tx'>,
  format: string,
): Streamed {
  const { query } = given;
  return {
    is_feed,
    open: async (tx: Tx) => {
      if (file) return file.open({ ...given, tx, format });
      const rows = await (stream as NonNullable<typeof stream>)({ ...given, tx, format: format as StreamFormat });
      return fileOf(rows, format as StreamFormat, (query as { bom?: string }).bom === 'true');
    },
  };
}

function formatAsked({ query, headers, validationError }: FastifyRequest, operation: Operation): string {
  const { stream, file, is_feed } = operation;
  if (!(stream || file) || validationError) return 'json';
  if (is_feed) return 'ndjson';
  if (file?.only) return Object.keys(file.media_types)[0] as string;
  return formatOf((query as { format?: string }).format, headers.accept, file?.media_types);
}

/** Identifies the caller. A request without a valid key counts against its address. */
async function identify(request: FastifyRequest, database: Database): Promise<Presented> {
  const { headers } = request;
  const address = addressOf(request);
  const { address_rate, key_leases } = request.server;
  address_rate.requireLeft(address, headers.authorization);
  try {
    const presented = await withinDeadline(request, 'authentication', (asked) =>
      authenticate(key_leases, database, { headers, address }, asked),
    );
    address_rate.remember(headers.authorization, presented);
    return presented;
  } catch (error) {
    if (error instanceof Problem && error.status === 401) address_rate.count(address);
    throw error;
  }
}

/** The schemas that requests are validated against, and the name that they are counted under. */
const routeSchema = ({ name, method, params, query, body, bulk_of }: Operation) => ({
  operationId: name,
  params,
  querystring: query,
  ...(method === 'GET' || bulk_of ? {} : { body }),
});

interface Answering {
  store: Store;
  services: Services;
  asked: Asked;
  /** Runs a request in a shared transaction: see resource/shared_transaction.ts. */
  join?: Join | undefined;
}

type Join = (organization_id: string, member: Sharing) => Promise<unknown>;
type Sharing = Member<unknown> & Pick<Context<unknown, unknown, unknown>, 'caller' | 'params' | 'query'>;

/** Returns the runner of requests that share a transaction: as a set, or, where each reads one object, each by itself. */
function sharedTransactionOf(
  app: FastifyInstance,
  operation: Operation,
  { store, services }: Omit<Answering, 'asked'>,
): Join | undefined {
  const { together: as_set, reads_one, unlogged } = operation;
  // An entry is of one request, and written by its own transaction.
  if (as_set && !unlogged)
    throw new Error(`${operation.name} shares transactions: it makes no entry in the audit log.`);
  if (!as_set && !reads_one) return undefined;
  return inSharedTransaction<Sharing, unknown, unknown>(store, {
    within: (work) => withinDeadline({ server: app, giveUp: undefined }, nounOf(operation), work),
    only_reads: reads_one,
    ahead: as_set?.ahead,
    leaves_one: as_set?.leaves_one,
    run: (tx, members, read) =>
      as_set
        ? as_set.run({ tx, services }, members, read)
        : together(
            members.map((one) =>
              operation.run({ ...one, tx, services, asked: undefined, ahead: undefined }).catch(asProblem),
            ),
          ),
  });
}

function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  throw error;
}

/** One request is one transaction. */
async function answer(
  request: FastifyRequest,
  operation: Operation,
  { store, services, asked, join }: Answering,
): Promise<Reply & { replayed: boolean }> {
  const caller = request.presented as Presented;
  const { method, url, headers, rawBody } = request;
  const idempotent = idempotentRequest(caller.api_key_id, method, url, headers['idempotency-key'], rawBody);
  if (join && !idempotent) {
    refuseInvalid(request);
    const { body, params, query, id: request_id } = request;
    const result = await join(caller.organization_id, { body, params, query, caller, request_id });
    if (result !== undefined) return { ...replyOf(request, operation, result), replayed: false };
  }
  const options = {
    ...{ organization_id: caller.organization_id, request_id: request.id, idempotency_key: idempotent?.key },
    ...{ one_state: operation.may_lag, only_reads: method === 'GET' && !operation.writes, asked },
    ahead: request.validationError ? undefined : readAhead(request, operation),
  };
  const { params, body } = request;
  const asking = { caller, params, body, request_id: request.id };
  const { rejection, found } = request.validationError
    ? {}
    : await askOutside(asking, operation, { store, services, asked });
  const outcome = await transaction(store, options, async (tx) => {
    const first = idempotent && storedReply(tx, idempotent, services.vault);
    if (first) return { ...first, replayed: true };
    refuseInvalid(request);
    if (rejection) throw rejection;
    const { params, query, body } = request;
    const result = await runLogged(tx, operation, { caller, services, params, query, body, asked: found });
    if (result instanceof Problem) return result;
    const reply = replyOf(request, operation, result);
    if (idempotent) keepReply(tx, idempotent, reply, services.vault);
    return { ...reply, replayed: false };
  });
  if (outcome instanceof Problem) throw outcome;
  return outcome;
}

const replyOf = ({ body, corrections }: FastifyRequest, operation: Operation, result: unknown): Reply => ({
  status: statusOf(operation, body),
  body: JSON.stringify(withCorrections(result, corrections)),
});

const readAhead = ({ params, body }: FastifyRequest, { ahead }: Operation) =>
  ahead && ((tx: Tx) => ahead({ tx, params, body }));

const statusOf = ({ status, other_reply }: Operation, body: unknown): Operation['status'] =>
  other_reply?.when(body) ? other_reply.status : status;

type Running = Omit<Context<unknown, unknown, unknown>, 'tx'> & { asked: unknown };

/** Runs an operation, and has its entry in the audit log be written. @returns its result, or a problem whose writes commit */
export async function runLogged(tx: Tx, operation: Operation, running: Running): Promise<unknown> {
  const { caller, params, body } = running;
  const result = await operation.run({ ...running, tx, ahead: await tx.ahead }).catch(problemThatCommits);
  if (!(result instanceof Problem) && isLogged(operation, body))
    logChange(tx, operation.name, { caller, params: params as object, body, reply: result });
  return result;
}

type Asking = Pick<Context<unknown, unknown, unknown>, 'caller' | 'params' | 'body'> & { request_id: string };

/** External checks on a request. Their outcome is reported only where the request is not a replay of one that was answered. */
export async function askOutside(
  { request_id, ...given }: Asking,
  { ask }: Operation,
  { store, services, asked }: Pick<Answering, 'store' | 'services' | 'asked'>,
): Promise<{ rejection?: Problem; found?: unknown }> {
  if (!ask) return {};
  try {
    const { organization_id } = given.caller;
    const read = <Result>(work: (tx: Tx) => Promise<Result>) =>
      transaction(store, { organization_id, request_id, asked }, work);
    return { found: await ask({ ...given, services, read }) };
  } catch (error) {
    if (error instanceof Problem) return { rejection: error };
    throw error;
  }
}

/** Throws what validation found, only now: a reused idempotency key is reported first. */
function refuseInvalid(request: FastifyRequest): void {
  const { validationError } = request;
  refuseUnstorable({ ...(request.params as object), ...(request.query as object) });
  if (!validationError) return;
  const part = validationError.validationContext as string;
  const inputs: Record<string, unknown> = { body: request.body, querystring: request.query, params: request.params };
  throw validationProblem(validationError as unknown as ZodError, part, inputs[part]);
}

/** For the parameters of path and query; a body is checked where it is read. */
function refuseUnstorable(parameters: object): void {
  const path = pathOfUnstorable(parameters);
  if (path) throw unstorableText(path[0]);
}

/** "The service verifies a signature whenever one is sent"; a key may require one. */
function requireSignature(request: FastifyRequest, { secret, signature_required }: Presented): void {
  const header = request.headers['rail-signature'];
  if (typeof header === 'string') verifySignature(header, secret, request.rawBody, databaseTime());
  if (header !== undefined || !signature_required) return;
  throw new Problem(
    'signature_required',
    "This key requires signed requests. Send the header 'Rail-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256>'.",
    { param: 'Rail-Signature' },
  );
}

function requireVersion({ headers }: FastifyRequest): void {
  const version = headers['rail-version'];
  if (version === undefined || version === api_version) return;
  throw new Problem(
    'invalid_parameter',
    `Rail-Version must be '${api_version}', the only version. Correct the header, or leave it out.`,
    { param: 'Rail-Version' },
  );
}
