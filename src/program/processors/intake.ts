/**
 * `POST /processors/{processor}/{program_id}`: the webhooks of billing processors. It needs no key: they are signed. An event is stored with the job
 * that works on it, and then answered: nobody outside is asked.
 */
import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import sql from 'sql-template-tag';
import { withinDeadline } from '../../core/http/deadline.ts';
import { addressOf } from '../../core/net/client_address.ts';
import type { Asked } from '../../core/pool/lending.ts';
import { runFor } from '../../core/postgres/database.ts';
import { type Store, type Tx, transaction } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import type { Services } from '../../core/resource/services.ts';
import { databaseTime } from '../../core/values/clock.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { type Connection, secretsOf, signingConnections } from './connection.ts';
import { workLater } from './inbox.ts';
import { type Outcome, webhooks } from './metrics.ts';
import { type Credentials, type Delivery, DeliveryRefused, type Envelope, type ProcessorName } from './processor.ts';
import { billing, isProcessorName } from './processors.ts';

interface Addressed {
  processor: ProcessorName;
  program_id: string;
}

export function mountProcessorWebhooks(app: FastifyInstance, store: Store, services: Services): void {
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
          receive({ store, services, asked }, addressed, request),
        );
        webhooks.inc({ processor, outcome });
        if (outcome === 'refused') throw refusal(request);
        return reply.code(200).send({ received: true });
      },
    });
  });
}

/** A signature is of the bytes as they came, whatever they are. */
function takeRawBodies(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, done) => {
    request.rawBody = body as Buffer;
    done(null, undefined);
  });
}

/** A processor sends as many as it likes; whoever is none has the limit of those without a key. */
function refusal(request: FastifyRequest): Problem {
  request.server.address_rate.count(addressOf(request));
  return new Problem(
    'signature_invalid',
    'The webhook is not signed with the secret of this program, or its time is more than five minutes from the current time.',
  );
}

async function receive(
  { store, services, asked }: { store: Store; services: Services; asked: Asked },
  addressed: Addressed,
  { id: request_id, headers, rawBody }: FastifyRequest,
): Promise<Outcome> {
  const { processor, program_id } = addressed;
  const connections = await runFor<Connection>(store.database, asked, signingConnections(program_id, processor));
  const delivery = { headers, raw_body: rawBody ?? Buffer.alloc(0), now_ms: databaseTime() };
  const received = verified(processor, delivery, connections, services);
  if (received === undefined) return 'refused';
  const { connection, envelope } = received;
  if (!envelope) return 'unknown_type';
  if (envelope.livemode !== (connection.mode === 'live')) return 'other_mode';
  const { organization_id } = connection;
  return transaction(store, { organization_id, request_id, asked }, async (tx) => {
    const body = delivery.raw_body.toString('utf8');
    return (await take(tx, addressed, envelope, body)) ? 'stored' : 'repeated';
  });
}

/** Stores an event, and has it worked on. @returns whether it is new */
export async function take(
  tx: Tx,
  { processor, program_id }: Addressed,
  envelope: Envelope,
  body: string,
): Promise<boolean> {
  const stored = await insert<{ id: string }>(
    tx,
    'program.processor_event',
    {
      ...{ id: newId('pev'), program_id, processor, ...envelope, body },
      ...{ run_id: newId('run'), status: 'pending', created_at: tx.now, updated_at: tx.now },
    },
    { on_conflict: sql`on conflict do nothing`, returning: sql`t.id` },
  );
  if (!stored) return false;
  workLater(tx, program_id, [envelope.queue]);
  return true;
}

/** For programs without a connection: the answer is the same, after the same work. */
const decoy = { webhook_secret: `whsec_${randomBytes(32).toString('hex')}` };

function verified(
  processor: ProcessorName,
  delivery: Delivery,
  connections: Connection[],
  services: Services,
): { connection: Connection; envelope: Envelope | undefined } | undefined {
  if (connections.length === 0) attempt(processor, delivery, decoy);
  for (const connection of connections) {
    const found = attempt(processor, delivery, secretsOf(services, connection));
    if (found) return { connection, envelope: found.envelope };
  }
  return undefined;
}

function attempt(
  processor: ProcessorName,
  delivery: Delivery,
  credentials: Credentials,
): { envelope: Envelope | undefined } | undefined {
  try {
    return { envelope: billing[processor].receive(delivery, credentials) };
  } catch (error) {
    if (error instanceof DeliveryRefused) return undefined;
    throw error;
  }
}
