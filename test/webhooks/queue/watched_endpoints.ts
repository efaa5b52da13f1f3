import { transaction } from '../../../src/core/postgres/transaction.ts';
import { newId } from '../../../src/core/values/id.ts';
import { catalogue } from '../../../src/program/events/catalogue.ts';
import { type Caller, eventually, type Json, type Rail, sql } from '../../harness.ts';
import type { Shop } from '../../shop.ts';
import type { Request, ScriptedReceiver, startScriptedReceivers } from './scripted_receiver.ts';

/** An event as it is told: everything that its receivers must see of it. */
export interface Told {
  type: string;
  partner_id: string;
  data: Json;
  request_id: string;
}

/** The history of one endpoint, in its order. */
export type Happening =
  | { what: 'request'; request: Request }
  /** `to`: the number of rotations so far. */
  | { what: 'rotating' | 'rotated'; to: number }
  | { what: 'disabled' | 'enabling' }
  /** A worker is being killed. */
  | { what: 'killing' }
  /** Nothing waits and nobody sends. */
  | { what: 'quiet' };

export interface WatchedEndpoint {
  id: string;
  /** Empty: all. */
  types: string[];
  partner_id: string | null;
  /** The first one and those that rotations brought. */
  secrets: string[];
  receiver: ScriptedReceiver;
  history: Happening[];
}

/** A shop with two partners and three endpoints: one that takes everything, one that chose types, and a partner's postback. */
export interface WatchedShop {
  merchant: Caller;
  program_id: string;
  partners: [string, string];
  endpoints: WatchedEndpoint[];
  /** Tells events in one transaction. */
  tell(events: { type: string; partner: 0 | 1 }[]): Promise<Told[]>;
  /** Waits until all events are fanned out. */
  fannedOut(): Promise<void>;
  /** Waits until nothing waits and nobody sends. */
  quiet(): Promise<void>;
  /** In the order of their positions. */
  events(): Promise<Json[]>;
  deliveries(endpoint: WatchedEndpoint): Promise<Json[]>;
  /** Runs the delivery sweep as of a time. */
  placeRetries(at: string): Promise<void>;
  /** Waits until jobs of this kind have ended. */
  ended(task: string): Promise<void>;
}

export const chosen_types = ['sale.created', 'commission.created'];

export async function watchEndpoints(
  rail: Rail,
  shop: Shop,
  receivers: Awaited<ReturnType<typeof startScriptedReceivers>>,
): Promise<WatchedShop> {
  const { merchant, program_id } = shop;
  const { organization_id } = merchant;
  const partners: [string, string] = [(await shop.partner()).id, (await shop.partner()).id];
  const fannedOut = () =>
    eventually(
      async () =>
        (await rail.query(sql`select 1 from webhooks.pending_event where program_id = ${program_id}`)).length === 0,
      'the fan-out',
    );
  await fannedOut();

  const open = async (types: string[], partner_id: string | null): Promise<WatchedEndpoint> => {
    const history: Happening[] = [];
    const receiver = receivers.open((request) => history.push({ what: 'request', request }));
    const owner = partner_id === null ? {} : { partner_id };
    const { id, secret } = await shop.endpoint(receiver.url, { event_types: types, ...owner });
    return { id, types, partner_id, secrets: [secret], receiver, history };
  };
  const endpoints = [await open([], null), await open(chosen_types, null), await open([], partners[0])];
  const ids = endpoints.map(({ id }) => id);

  const ended = (task: string): Promise<void> =>
    eventually(
      async () =>
        (await rail.query(sql`select 1 from graphile_worker.jobs where task_identifier = ${task}`)).length === 0,
      `the end of ${task}`,
    );
  return {
    ...{ merchant, program_id, partners, endpoints, fannedOut, ended },
    async tell(events) {
      const request_id = newId('req');
      const told = events.map(({ type, partner: nth }) => {
        const partner_id = partners[nth];
        const data = { ...(catalogue[type as keyof typeof catalogue].example as Json), partner_id };
        return { type, partner_id, data, request_id };
      });
      await transaction(rail.store, { organization_id, request_id }, async (tx) => {
        for (const { type, partner_id, data } of told)
          tx.emit({ product: 'program', type, subject_id: program_id, owner_id: partner_id, data });
      });
      return told;
    },
    async quiet() {
      const busy = sql`
        select 'event' as what from webhooks.pending_event where program_id = ${program_id}
        union all select 'queued' from webhooks.queued_delivery where endpoint_id = any (${ids})
        union all select 'lease' from webhooks.endpoint_queue where endpoint_id = any (${ids}) and lease_until is not null`;
      await eventually(async () => (await rail.query(busy)).length === 0, 'quiet');
      for (const { history } of endpoints) history.push({ what: 'quiet' });
    },
    events: () =>
      rail.query(sql`
        select id, type, partner_id, body, postback_body, request_id from webhooks.event
        where program_id = ${program_id} and not (type = 'affiliate.created' and partner_id = any (${partners}))
        order by position`),
    deliveries: ({ id }) =>
      rail.query(sql`
        select id, event_id, queue_position, status, attempt, next_attempt_at, replay_of from webhooks.delivery
        where organization_id = ${organization_id} and endpoint_id = ${id}
        order by id`),
    async placeRetries(at) {
      await rail.tick('webhooks/enqueue_due_retries', at);
      await ended('webhooks/enqueue_due_retries');
    },
  };
}

/** Returns whether an endpoint receives an event, by its subscriptions. */
export function wants({ types, partner_id }: WatchedEndpoint, told: Pick<Told, 'type' | 'partner_id'>): boolean {
  if (types.length > 0 && !types.includes(told.type)) return false;
  if (partner_id === null) return true;
  return partner_id === told.partner_id && catalogue[told.type as keyof typeof catalogue].postback !== false;
}
