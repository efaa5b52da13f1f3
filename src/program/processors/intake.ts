/**
 * `POST /processors/{processor}/{program_id}`: the webhooks of billing processors. It needs no key: they are signed. An event is stored with the job
 * that works on it, and then answered: nobody outside is asked.
 */
import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import sql, { raw } from 'sql-template-tag';
import { withinDeadline } from '../../core/http/deadline.ts';
import { takeRawBodies } from '../../core/http/json_body.ts';
import { addressOf } from '../../core/net/client_address.ts';
import type { Asked } from '../../core/pool/lending.ts';
import { runFor } from '../../core/postgres/database.ts';
import type { Store, Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { inSharedTransaction } from '../../core/resource/shared_transaction.ts';
import { databaseTime } from '../../core/values/clock.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { type Connection, secretsOf, signingConnections } from './connection.ts';
import { workLater } from './inbox.ts';
import { type Outcome, webhooks } from './metrics.ts';
import {
  type Credentials,
  type Delivery,
  DeliveryRefused,
  type Envelope,
  type ProcessorMode,
  type ProcessorName,
} from './processor.ts';
import { billing, isProcessorName } from './processors.ts';

interface Addressed {
  processor: ProcessorName;
  program_id: string;
}

export function mountProcessorWebhooks(app: FastifyInstance, store: Store, services: Services): void {
  const known = new KnownConnections();
  const keep = inSharedTransaction<Taken, undefined, Kept>(store, {
    within: (work) => withinDeadline({ server: app, giveUp: undefined }, 'sales', work),
    run: take,
  });
  app.register(async (scope) => {
    takeRawBodies(scope);
    scope.route<{ Params: { processor: string; program_id: string } }>({
      method: 'POST',
      url: '/processors/:processor/:program_id',
      config: { counts_refusals: true },
      handler: async (request, reply) => {
        const { processor, program_id } = request.params;
        if (!isProcessorName(processor))
          throw new Problem('resource_not_found', 'The path does not exist: no billing processor has this name.');
        const addressed = { processor, program_id };
        const outcome = await withinDeadline(request, 'sales', (asked) =>
          receive({ store, services, asked, keep, known }, addressed, request),
        );
        webhooks.inc({ processor, outcome });
        if (outcome === 'refused') throw refusal(request, processor);
        return reply.code(200).send({ received: true });
      },
    });
  });
}

/** A processor sends as many as it likes; whoever is none has the limit of those without a key. */
function refusal(request: FastifyRequest, processor: ProcessorName): Problem {
  request.server.address_rate.count(addressOf(request));
  return new Problem('signature_invalid', billing[processor].refusal);
}

interface Receiving {
  store: Store;
  services: Services;
  asked: Asked;
  /** Stores what was verified, in a transaction that those share that come together. */
  keep: (organization_id: string, taken: Taken) => Promise<Kept | undefined>;
  known: KnownConnections;
}

async function receive(
  receiving: Receiving,
  addressed: Addressed,
  { headers, rawBody }: FastifyRequest,
): Promise<Outcome> {
  const { processor, program_id } = addressed;
  const delivery = { headers, raw_body: rawBody ?? Buffer.alloc(0), now_ms: databaseTime() };
  const received =
    verified(processor, delivery, receiving.known.of(addressed)) ??
    verified(processor, delivery, await readConnections(receiving, addressed));
  if (received === undefined) return 'refused';
  const { connection, envelope } = received;
  if (!envelope) return 'unknown_type';
  const { organization_id, mode } = connection;
  if (isOtherMode(envelope, mode)) return 'other_mode';
  const taken = { processor, program_id, mode, envelope, body: delivery.raw_body.toString('utf8') };
  return (await receiving.keep(organization_id, taken)) ?? 'refused';
}

interface Verifying extends Pick<Connection, 'organization_id' | 'mode'> {
  secrets: Credentials;
}

const trusted_ms = 1_000;
const most_known = 10_000;

/** The connections that webhooks were signed for within the last second, which spares each a look-up. Whether they still stand is asked for where it is stored. */
class KnownConnections {
  readonly #known = new Map<string, { until: number; connections: Verifying[] }>();

  of({ processor, program_id }: Addressed): Verifying[] {
    const found = this.#known.get(`${processor} ${program_id}`);
    return found && found.until > performance.now() ? found.connections : [];
  }

  keep({ processor, program_id }: Addressed, connections: Verifying[]): void {
    if (this.#known.size >= most_known) this.#known.clear();
    this.#known.set(`${processor} ${program_id}`, { until: performance.now() + trusted_ms, connections });
  }
}

async function readConnections(
  { store, services, asked, known }: Receiving,
  addressed: Addressed,
): Promise<Verifying[]> {
  const { processor, program_id } = addressed;
  const rows = await runFor<Connection>(store.database, asked, signingConnections(program_id, processor));
  const connections = rows.map(({ organization_id, mode, ...row }) => ({
    ...{ organization_id, mode },
    secrets: secretsOf(services, row),
  }));
  if (connections.length > 0) known.keep(addressed, connections);
  return connections.length > 0 ? connections : [decoy];
}

/** Returns whether an event is of test mode at a connection in live mode, or the reverse. */
export const isOtherMode = ({ livemode }: Envelope, mode: ProcessorMode): boolean =>
  livemode !== null && livemode !== (mode === 'live');

/** An event that a processor has sent, or has told when it was asked. */
export interface Taken extends Addressed {
  mode: ProcessorMode;
  envelope: Envelope;
  body: string;
}

type Kept = 'stored' | 'repeated' | 'refused';

/**
 * Stores events that are new, and has them worked on.
 * @returns what became of each: `refused` where its program is connected no more
 */
export async function take(tx: Tx, taken: Taken[]): Promise<Kept[]> {
  if (taken.length === 0) return [];
  const { organization_id, now } = tx;
  const rows = taken.map(({ processor, program_id, mode, envelope, body }) => ({
    ...{ organization_id, id: newId('pev'), program_id, processor, ...envelope, livemode: mode === 'live', body },
    ...{ run_id: newId('run'), status: 'pending', created_at: now, updated_at: now },
  }));
  const columns = raw(Object.keys(rows[0] as object).join(', '));
  // In one order in all transactions: two that store the same events do not wait for each other.
  const stored = await tx.all<{ key: string }>(sql`
    insert into program.processor_event as t (${columns})
    select ${columns}
    from json_populate_recordset(null::program.processor_event, ${JSON.stringify(rows)}::json) as r
    where exists (
      select from program.processor p
      where p.organization_id = r.organization_id and p.program_id = r.program_id and p.processor = r.processor and p.deleted_at is null
    )
    order by r.program_id, r.processor, r.external_event_id
    on conflict do nothing
    returning ${key} as key`);
  const is_new = new Set(stored.map((row) => row.key));
  const left = taken.filter((one) => !is_new.has(keyOf(one)));
  const repeated = left.length === 0 ? new Set<string>() : await thoseThere(tx, left);
  const queues = Map.groupBy(
    taken.filter((one) => is_new.has(keyOf(one))),
    ({ program_id }) => program_id,
  );
  for (const [program_id, events] of queues)
    workLater(
      tx,
      program_id,
      events.map(({ envelope }) => envelope.queue),
    );
  return taken.map((one) => {
    if (is_new.has(keyOf(one))) return 'stored';
    return repeated.has(keyOf(one)) ? 'repeated' : 'refused';
  });
}

const key = sql`t.program_id || ' ' || t.processor || ' ' || t.external_event_id`;
const keyOf = ({ program_id, processor, envelope }: Taken): string =>
  `${program_id} ${processor} ${envelope.external_event_id}`;

async function thoseThere(tx: Tx, taken: Taken[]): Promise<Set<string>> {
  const rows = await tx.all<{ key: string }>(sql`
    select ${key} as key
    from unnest(
      ${taken.map(({ program_id }) => program_id)}::text[], ${taken.map(({ processor }) => processor)}::text[],
      ${taken.map(({ envelope }) => envelope.external_event_id)}::text[]
    ) as g (program_id, processor, external_event_id)
    join program.processor_event t on ${tenant(tx)} and t.program_id = g.program_id and t.processor = g.processor
      and t.external_event_id = g.external_event_id`);
  return new Set(rows.map((row) => row.key));
}

/** For programs without a connection: the answer is the same, after the same work. */
const secret = randomBytes(32).toString('hex');
const decoy: Verifying = {
  ...{ organization_id: '', mode: 'live' },
  secrets: { webhook_secret: `whsec_${secret}`, webhook_username: secret, webhook_password: secret },
};

function verified(
  processor: ProcessorName,
  delivery: Delivery,
  connections: Verifying[],
): { connection: Verifying; envelope: Envelope | undefined } | undefined {
  for (const connection of connections) {
    try {
      return { connection, envelope: billing[processor].receive(delivery, connection.secrets) };
    } catch (error) {
      if (!(error instanceof DeliveryRefused)) throw error;
    }
  }
  return undefined;
}
