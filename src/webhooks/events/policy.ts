import sql from 'sql-template-tag';
import type { z } from 'zod';
import type { EmittedEvent, Tx } from '../../core/postgres/transaction.ts';
import type { AnyResource } from '../../core/resource/resource.ts';
import { id } from '../../core/values/fields.ts';
import { notFound, type ProblemCode } from '../../core/values/problem.ts';
import type { chat_types } from '../queue/chat.ts';
import type { RetryTimes } from '../queue/due_retries.ts';
import type { Catalogue } from './catalogue.ts';

/** The settings of a product's webhooks: everything else is the same for all products. */
export interface EventPolicy {
  /** The product, as its drafts name it. */
  product: string;
  /** The base path of its API: `/v1`. */
  path: string;
  /** In front of the names of its webhooks' operations, scopes and schemas, so that those of two products differ: empty, or `recruitment_`. */
  namespace: string;
  catalogue: Catalogue;
  /** `evt` */
  id_prefix: string;
  /** `whd` */
  delivery_prefix: string;
  /** `whe` */
  endpoint_prefix: string;
  /** The resource that an event is about and an endpoint listens to. Null: the organization. */
  subject: Reference | null;
  /** The resource that may have postbacks, which receive the events of their owner alone. Null: there are no postbacks. */
  owner: Reference | null;
  /** The body that endpoints receive. Test events have it too, with an id that starts with `evt_test_`. */
  envelope(event: EmittedEvent): object;
  /** The fields of the envelope besides id, type, created_at and data, and their description. */
  envelope_fields: Record<string, z.ZodType>;
  envelope_doc: string;
  /** Endpoints must be https addresses, unless private ones are allowed. */
  https_only: boolean;
  /** The types that an endpoint is created with, the usual one first: see sql/migrations/0002_webhooks.sql. Null: all are live. */
  endpoint_types: readonly [EndpointType, ...EndpointType[]] | null;
  /** The line of text that team chats receive. Null: no endpoint is one. */
  chatText: ((event: Pick<EmittedEvent, 'type' | 'data'>) => string) | null;
  /** The times at which due retries are sent. */
  retries: RetryTimes;
  /** True if `Rail-Request-Id` names the request that caused an event. */
  names_requests: boolean;
  /** True if all events and deliveries are listed, and replayed in bulk. Else there are the logs of endpoints, and single replays. */
  lists_all: boolean;
  /**
   * Checks that the organization's plan includes webhooks. Null: every plan does.
   * @throws Problem feature_not_in_plan
   */
  requireIncluded: ((tx: Tx) => Promise<void>) | null;
  /** The number of an endpoint's newest deliveries that its log shows; null: all that are kept. */
  most_in_log: number | null;
}

export type EndpointType = 'live' | 'test' | (typeof chat_types)[number];

/** A field of events and endpoints that refers to a record of the product: `program_id`, `prg`, programs. */
export interface Reference {
  field: string;
  prefix: string;
  resource: AnyResource;
}

/** Returns the noun of the subject that endpoints listen to: `program`. */
export const subjectNoun = ({ subject }: EventPolicy): string =>
  subject?.resource.object.replaceAll('_', ' ') ?? 'organization';

/** The error of operations that only some plans include, where the product has plans. */
export const planErrors = ({ requireIncluded }: EventPolicy): ProblemCode[] =>
  requireIncluded ? ['feature_not_in_plan'] : [];

/** Returns the id of the subject of an endpoint or a delivery: the organization where the product has no narrower subject. */
export const subjectOf = ({ subject }: EventPolicy, tx: Tx, record: object): string =>
  subject ? ((record as Record<string, string>)[subject.field] as string) : tx.organization_id;

/** Returns the owner of an endpoint that is a postback. */
export const ownerOf = ({ owner }: EventPolicy, record: object): string | null =>
  owner ? ((record as Record<string, string | null>)[owner.field] ?? null) : null;

/** Fields of a record, of whatever name the product gives them. */
type Named = Record<never, z.ZodType>;

export const subjectFields = ({ subject }: EventPolicy): Named =>
  subject ? { [subject.field]: id(subject.prefix) } : {};

export const ownerFields = ({ owner }: EventPolicy, meaning: string): Named =>
  owner ? { [owner.field]: id(owner.prefix).nullable().describe(meaning) } : {};

/** The columns behind those fields, which are called the same for all products. */
export const referenceColumns = ({ subject, owner }: EventPolicy) => ({
  ...(subject ? { [subject.field]: sql`t.program_id` } : {}),
  ...(owner ? { [owner.field]: sql`t.partner_id` } : {}),
});

/** Restricts a list to one of the subject's records. */
export const withinSubject = ({ subject }: EventPolicy): { within?: AnyResource } =>
  subject ? { within: subject.resource } : {};

/** A resource of the product's webhooks. All products share its table: the prefix of the ids tells the records apart. */
export const recordsOf = <Records extends AnyResource>(
  records: Records,
  { subject }: EventPolicy,
  prefix: string,
): Records => ({
  ...records,
  alive: subject ? records.alive : sql`${records.alive} and t.program_id = t.organization_id`,
  get: async (tx: Tx, record_id: string, options: { param?: string } = {}) => {
    if (!record_id.startsWith(`${prefix}_`)) throw notFound(records.object, record_id, options.param);
    return records.get(tx, record_id, options);
  },
});

/** Makes what follows from a product's policy once, because schemas are known by their names. */
export function perProduct<Made>(make: (policy: EventPolicy) => Made): (policy: EventPolicy) => Made {
  const known = new WeakMap<EventPolicy, { made: Made }>();
  return (policy) => {
    const { made } = known.get(policy) ?? { made: make(policy) };
    known.set(policy, { made });
    return made;
  };
}
