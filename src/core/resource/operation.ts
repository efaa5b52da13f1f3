import { z } from 'zod';
import type { StreamFormat } from '../formats/format.ts';
import type { FileStream, RowStream } from '../formats/row_stream.ts';
import type { Tx } from '../postgres/transaction.ts';
import type { Details } from '../values/detail.ts';
import { nounOf } from '../values/noun.ts';
import type { Problem, ProblemCode } from '../values/problem.ts';
import { enrich } from './enrich.ts';
import { list } from './list.ts';
import type { ListOptions } from './list_query.ts';
import { readScope } from './resource.ts';
import { known_scopes } from './scope.ts';
import type { Services } from './services.ts';

/** The caller: the key that opened the request, or the person whose session did. */
export interface Caller {
  organization_id: string;
  /** The id of the key, or of the session. Empty: the command line. */
  api_key_id: string;
  /** The person in whose session the request is made; undefined for a key, whose user is read where it matters. */
  user_id?: string;
  /** The partner in whose session the request is made. */
  partner_id?: string;
  mode: 'live' | 'test';
  scopes: string[];
}

export interface Context<Params, Query, Body> {
  tx: Tx;
  caller: Caller;
  services: Services;
  params: Params;
  query: Query;
  body: Body;
  /** How far a list counts for its `total_count`, where that takes counting: see `list`. Exact where left out. */
  counts_to?: number | undefined;
}

/** One of the requests that share a transaction. */
export interface Member<Body> {
  body: Body;
  request_id: string | null;
}

/** A body that may also be sent as a file, instead of JSON. */
export interface Upload {
  /** The field of the body that the file stands for: a text. */
  field: string;
  media_types: string[];
  /** The limit of the body, in either form. */
  most_bytes: number;
}

/** Reads in a transaction of its own. */
export type Read = <Result>(read: (tx: Tx) => Promise<Result>) => Promise<Result>;
type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
const nothing = z.strictObject({});
type Nothing = typeof nothing;

interface Options<
  P extends z.ZodType,
  Q extends z.ZodType,
  B extends z.ZodType,
  R extends z.ZodType,
  Asked = unknown,
  Ahead = unknown,
> {
  /** `partners.create`: also the operationId. */
  name: string;
  method: Method;
  /** The path, with `{id}` for the fields of `params`. */
  path: string;
  scope: string;
  /** Further scopes that it needs, where it shows data of other resources. */
  further_scopes?: string[];
  /** Its short name in a menu, where the one that its name makes does not say what it does: see description/title.ts. */
  title?: string;
  /** One sentence on what it does. */
  summary: string;
  /** Further facts that a caller must know. */
  doc?: string;
  params?: P;
  query?: Q;
  body?: B;
  upload?: Upload;
  /** Its body is a list of bodies of this operation, each checked and answered by itself: see bulk.ts. */
  bulk_of?: Operation;
  /** The fields of the body that only describe, for which no request is refused; the reply has `warnings` for them. */
  details?: Details;
  /** A body, where one derived from its schema would be refused. */
  example?: z.input<B>;
  reply: R;
  /** The status of success: 201 for creates, 202 for requests that are only queued, else 200. */
  status?: 200 | 201 | 202;
  /** Another answer, to requests whose body asks for it: a preview, say. */
  other_reply?: { status: 200; reply: z.ZodType; when(body: z.infer<B>): boolean };
  /**
   * External checks, made before the transaction, since none may be open while others are waited for. Throws a Problem; what it gives is
   * `asked` of `run`. `read`: a transaction of its own, for what must be known to ask.
   */
  ask?: (
    context: Pick<Context<z.infer<P>, z.infer<Q>, z.infer<B>>, 'caller' | 'params' | 'body' | 'services'> & {
      read: Read;
    },
  ) => Promise<Asked>;
  /**
   * It reads at length and writes nothing, sees one state of the database, and may answer from a replica, whose state is some seconds old.
   * An organization runs few of them at once: see postgres/reading_limit.ts.
   */
  may_lag?: boolean;
  /** A GET that writes what is due by now, such as the credits of a month. All others run in transactions that cannot write. */
  writes?: boolean;
  /** It makes no entry in the audit log, although it is no GET: see `withoutEntries`. */
  unlogged?: boolean;
  /** True if test keys may call it. Undefined: the product's rule for all of its operations. */
  test_keys?: boolean;
  /** Refuses a test key that may not call it in another way, by the object that the path names: throws a Problem. */
  refuse_test_key?: (params: Record<string, string>) => void;
  /** The errors that it may answer, besides those that follow from its path and fields: see description/operation_errors.ts. */
  errors?: ProblemCode[];
  /** Reads facts that follow from the request alone, with the begin of the transaction. Its result is `ahead` of `run`. */
  ahead?: (context: Pick<Context<z.infer<P>, z.infer<Q>, z.infer<B>>, 'tx' | 'params' | 'body'>) => Promise<Ahead>;
  run: (context: Context<z.infer<P>, z.infer<Q>, z.infer<B>> & { asked: Asked; ahead: Ahead }) => Promise<z.input<R>>;
  /**
   * The same for requests that share a transaction, because they come together and have no idempotency key: see shared_transaction.ts. Gives what each comes
   * to, in their order; undefined for one that is left to `run`, as is each that comes alone where it `leaves_one`. Each is told of its own details (`warnings`) as ever.
   */
  together?: {
    ahead: (tx: Tx, members: Member<z.infer<B>>[]) => Promise<Ahead>;
    run: (
      context: Pick<Context<unknown, unknown, unknown>, 'tx' | 'services'>,
      members: Member<z.infer<B>>[],
      ahead: Ahead,
    ) => Promise<(z.input<R> | Problem | undefined)[]>;
    leaves_one?: boolean;
  };
  /** It reads one object: GETs that come together share a transaction, in which each is run by itself. */
  reads_one?: true;
  /** All its rows, in a transaction that only reads, for a GET whose query has `formatFields`: see the room formats. */
  stream?: (context: Context<z.infer<P>, z.infer<Q>, z.infer<B>> & { format: StreamFormat }) => Promise<RowStream>;
  /** The files that a GET answers with, in a transaction that only reads: beside JSON by `format` in its query and by `Accept`. */
  file?: {
    /** By format: `{ pdf: 'application/pdf' }`. */
    media_types: Record<string, string>;
    open: (context: Context<z.infer<P>, z.infer<Q>, z.infer<B>> & { format: string }) => Promise<FileStream>;
    /** It answers nothing but a file, of any of the types; `run` is not called. */
    only?: true;
  };
  /** NDJSON is all that it answers, a line for each `reply`; `run` is not called. Its stream sees one state of the database, and may write at its end. */
  is_feed?: true;
}

export interface Operation extends Options<z.ZodType, z.ZodType, z.ZodType, z.ZodType> {
  params: z.ZodType;
  query: z.ZodType;
  body: z.ZodType;
  status: 200 | 201 | 202;
  /** `partners`: what it is listed under. */
  tag: string;
}

/**
 * An operation of the REST API, as plain data. Validation, types, the OpenAPI description, the llms texts and the test that loops
 * over all operations are readings of it.
 */
export function operation<
  R extends z.ZodType,
  P extends z.ZodType = Nothing,
  Q extends z.ZodType = Nothing,
  B extends z.ZodType = Nothing,
  Asked = undefined,
  Ahead = undefined,
>(options: Options<P, Q, B, R, Asked, Ahead>): Operation {
  known_scopes.add(options.scope);
  return {
    ...(options as unknown as Options<z.ZodType, z.ZodType, z.ZodType, z.ZodType>),
    params: options.params ?? nothing,
    query: options.query ?? nothing,
    body: options.body ?? (options.method === 'GET' ? z.undefined() : nothing.default({})),
    status: options.status ?? 200,
    tag: options.name.split('.')[0] as string,
  };
}

/** An operation of a product that test keys may not call, unless the operation says that they may. */
export const refusingTestKeys = (operation: Operation): Operation => ({
  ...operation,
  test_keys: operation.test_keys ?? false,
});

/** Returns whether a request makes an entry in the audit log. */
export const isLogged = ({ method, unlogged, other_reply }: Operation, body: unknown): boolean =>
  method !== 'GET' && !unlogged && !other_reply?.when(body);

/** Marks the operations of these names as those that make no entry in the audit log. */
export const withoutEntries = (operations: Operation[], names: string[]): Operation[] =>
  operations.map((one) => (names.includes(one.name) ? { ...one, unlogged: true } : one));

/** Returns the path in the router's form: `/v1/programs/:id` of `/v1/programs/{id}`. */
export const routePath = (path: string): string => path.replace(/\{(\w+)\}/g, ':$1');

/** The path parameter of everything that acts on one object. */
export const idParams = z.strictObject({ id: z.string().min(1).describe('The id of the object.') });

/** List and get of a resource. */
export const readOperations = (options: ListOptions): Operation[] => [listOperation(options), getOperation(options)];

function listOperation(options: ListOptions): Operation {
  const { plural, base_path = '/v1', listed_as } = options.resource;
  const { query, reply, page, stream } = list(options);
  return operation({
    name: `${plural}.list`,
    method: 'GET',
    path: `${base_path}/${plural}`,
    scope: readScope(options.resource),
    ...(listed_as ? { title: `List ${listed_as}` } : {}),
    summary: `Lists ${listed_as ?? plural.replaceAll('_', ' ')}, ${options.order?.oldest_first ? 'oldest' : 'newest'} first.`,
    ...(options.list_doc ? { doc: options.list_doc } : {}),
    query,
    reply,
    run: ({ tx, query, caller, counts_to }) => page(tx, query as Record<string, unknown>, caller.scopes, counts_to),
    stream: ({ tx, query, caller, format }) => stream(tx, query as Record<string, unknown>, caller.scopes, format),
  });
}

function getOperation({ resource }: ListOptions): Operation {
  const { object, plural, base_path = '/v1' } = resource;
  return operation({
    name: `${plural}.get`,
    method: 'GET',
    path: `${base_path}/${plural}/{id}`,
    scope: readScope(resource),
    summary: `Retrieves the ${nounOf(object)} with the given id.`,
    reads_one: true,
    params: idParams,
    query: z.strictObject(resource.expansion),
    reply: resource.schema as z.ZodType,
    async run({ tx, params, query, caller }) {
      const row = await resource.get(tx, params.id);
      await enrich(tx, resource, [row], query, caller.scopes);
      return row;
    },
  });
}
