/**
 * `POST /rails/{rail}/{program_id}`: what a provider has to say of payouts. It needs no key: the provider signs it. It decides nothing: what it
 * names is looked up.
 */
import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import sql from 'sql-template-tag';
import { withinDeadline } from '../../../core/http/deadline.ts';
import { takeRawBodies } from '../../../core/http/json_body.ts';
import type { Asked } from '../../../core/pool/lending.ts';
import { runFor } from '../../../core/postgres/database.ts';
import { type Store, transaction } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import type { Services } from '../../../core/resource/services.ts';
import { databaseTime } from '../../../core/values/clock.ts';
import { Problem } from '../../../core/values/problem.ts';
import {
  type Credentials,
  type RailMode,
  type RailName,
  type ReceivedWebhook,
  WebhookNotVerifiable,
  WebhookRefused,
  type WebhookSubjects,
} from '../rails/rail.ts';
import { isRailName, providerUrl, rails } from '../rails/rails.ts';

const most_bytes = 65_536;
/** Less than a request waits for its answer. */
const verify_ms = 8_000;
/** The number of versions of credentials that a webhook is tried with, the newest first. */
const most_versions = 5;

export function mountRailWebhooks(app: FastifyInstance, store: Store, services: Services): void {
  app.register(async (scope) => {
    takeRawBodies(scope);
    scope.route<{ Params: { rail: string; program_id: string } }>({
      method: 'POST',
      url: '/rails/:rail/:program_id',
      bodyLimit: most_bytes,
      handler: async (request, reply) => {
        const { rail, program_id } = request.params;
        if (!isRailName(rail))
          throw new Problem('resource_not_found', 'The path does not exist: no provider of this name sends webhooks.');
        await withinDeadline(request, 'payouts', (asked) =>
          receive({ store, services, asked }, { rail, program_id }, request),
        );
        return reply.code(200).send({ received: true });
      },
    });
  });
}

interface Addressed {
  rail: RailName;
  program_id: string;
}

async function receive(
  { store, services, asked }: { store: Store; services: Services; asked: Asked },
  addressed: Addressed,
  { id: request_id, headers, rawBody: raw_body }: FastifyRequest,
): Promise<void> {
  const versions = await versionsOf(store, asked, addressed);
  const subjects = await verified(versions, addressed.rail, { headers, raw_body }, services);
  const organization_id = versions[0]?.organization_id;
  if (organization_id === undefined) return;
  await transaction(store, { organization_id, request_id, asked }, async (tx) => {
    const named = await tx.all<{ payout_id: string }>(sql`
      select distinct t.payout_id
      from program.payout_attempt t
      where ${tenant(tx)} and t.program_id = ${addressed.program_id} and t.rail = ${addressed.rail}
        and (t.reference = any(${subjects.references}) or t.id = any(${subjects.idempotency_keys}))`);
    for (const { payout_id: id } of named) {
      tx.enqueue('program/poll_payout', { organization_id, id }, { job_key: `poll:${id}` });
    }
  });
}

interface Version {
  organization_id: string;
  id: string;
  mode: RailMode;
  credentials: Buffer;
}

/** The current version, and older ones that open attempts were sent with. Ids of programs are unique over all organizations. */
const versionsOf = ({ database }: Store, asked: Asked, { rail, program_id }: Addressed): Promise<Version[]> =>
  runFor<Version>(
    database,
    asked,
    sql`
      select t.organization_id, t.id, t.mode, t.credentials
      from program.rail t
      where t.program_id = ${program_id} and t.rail = ${rail}
        and (t.deleted_at is null or exists (
          select
          from program.payout_attempt a
          where a.organization_id = t.organization_id and a.program_id = t.program_id and a.rail = t.rail
            and a.credentials_version = t.version
            and (a.status in ('prepared', 'in_doubt', 'processing') or a.next_poll_at is not null)
        ))
      order by t.version desc
      limit ${most_versions}`,
  );

/**
 * In place of those of a program that has none, or does not exist: its webhooks get the same answer after the same work, so that nothing is
 * learned of programs. Nobody can sign with these, but Wise, which signs the webhooks of all profiles with one key.
 */
const decoys: Readonly<Record<RailName, Credentials>> = {
  paypal: { webhook_id: randomBytes(16).toString('hex') },
  wise: { profile_id: '' },
  stripe: { webhook_secret: `whsec_${randomBytes(32).toString('hex')}` },
};

/** @throws Problem invalid_parameter, the same for whatever is wrong; service_unavailable where that cannot be checked now */
async function verified(
  versions: Version[],
  rail: RailName,
  webhook: ReceivedWebhook,
  { vault, provider_urls }: Services,
): Promise<WebhookSubjects> {
  const candidates = versions.map(({ id, mode, credentials }) => ({
    mode,
    credentials: JSON.parse(vault.decrypt(credentials, id)) as Credentials,
  }));
  const decoy = { mode: 'live' as const, credentials: decoys[rail] };
  for (const { mode, credentials } of candidates.length > 0 ? candidates : [decoy]) {
    const context = { mode, url: providerUrl(rail, mode, provider_urls), now: new Date(databaseTime()) };
    const cut_off = AbortSignal.timeout(verify_ms);
    const subjects = await rails[rail]
      .verifyWebhook(webhook, credentials, { ...context, cut_off })
      .catch((error: unknown) => refusal(error));
    if (subjects) return subjects;
  }
  throw new Problem('invalid_parameter', 'The webhook is not valid: its signature, its time or its body.');
}

/** Undefined: another version may verify it. */
function refusal(error: unknown): undefined {
  if (error instanceof WebhookRefused) return undefined;
  if (!(error instanceof WebhookNotVerifiable)) throw error;
  throw new Problem('service_unavailable', 'The webhook cannot be verified at the moment. Send it again.', {
    headers: { 'Retry-After': '60' },
  });
}
