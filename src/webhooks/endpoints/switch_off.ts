import sql from 'sql-template-tag';
import { ownerEmail } from '../../core/access/organization.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { queueMail } from '../../mail/outgoing.ts';
import { type EventPolicy, subjectNoun } from '../events/policy.ts';

/** "When the last 20 events sent to an endpoint all failed every retry within 30 days and the failures span at least five days." */
export const switch_off = { least_failures: 20, within_days: 30, span_days: 5 };

/** An endpoint that is disabled, and its failures since it last took an event. */
export interface DeadEndpoint {
  organization_id: string;
  program_id: string;
  /** The partner whose postback it is. */
  partner_id: string | null;
  url: string;
  /** Events that failed every attempt. */
  failed: number;
  first_failed_at: string;
  last_failed_at: string;
  last_error: string | null;
}

/**
 * "The endpoint is turned off and the account owner is emailed": both, or neither, in one transaction. What waits for it is cancelled in
 * its order, as for an endpoint that is turned off by hand.
 * @returns undefined where nothing is to be done, because another one has done it, or it has not failed for long enough
 */
export async function disableFailingEndpoint(
  tx: Tx,
  policy: EventPolicy,
  endpoint_id: string,
  base_url: string,
): Promise<DeadEndpoint | undefined> {
  const { least_failures, within_days, span_days } = switch_off;
  const dead = await tx.maybe<DeadEndpoint>(sql`
    select j.organization_id, j.program_id, j.partner_id, j.url, j.failed, j.first_failed_at, j.last_failed_at, j.last_error
    from webhooks.dead_endpoint(
      ${endpoint_id}, ${tx.now}::timestamptz, ${least_failures},
      make_interval(days => ${within_days}), make_interval(days => ${span_days})
    ) as j`);
  if (!dead) return undefined;
  await tx.all(sql`
    update webhooks.endpoint e
    set status = 'disabled', disabled_reason = ${reasonOf(policy, endpoint_id, dead)}, updated_at = ${tx.now}::timestamptz
    where e.organization_id = ${dead.organization_id} and e.id = ${endpoint_id}
    returning e.id`);
  const recipient = await ownerEmail(tx, dead.organization_id);
  await queueMail(tx, {
    organization_id: dead.organization_id,
    recipient,
    ...mailOf(policy, endpoint_id, dead, base_url),
  });
  return dead;
}

/** Returns the reason that the endpoint shows. */
function reasonOf({ path }: EventPolicy, endpoint_id: string, dead: DeadEndpoint): string {
  return [
    `Disabled: the last ${dead.failed} events sent to ${addressOf(dead)} failed every attempt`,
    `from ${minuteOf(dead.first_failed_at)} to ${minuteOf(dead.last_failed_at)}. The last error: ${errorOf(dead)}`,
    `Once the receiver works, enable it with POST ${path}/webhook_endpoints/${endpoint_id}/enable.`,
  ].join(' ');
}

function mailOf(
  policy: EventPolicy,
  endpoint_id: string,
  dead: DeadEndpoint,
  base_url: string,
): { subject: string; text: string } {
  const api = base_url + policy.path;
  const path = `${api}/webhook_endpoints/${endpoint_id}`;
  const noun = subjectNoun(policy);
  const subject_label = (noun.charAt(0).toUpperCase() + noun.slice(1)).padEnd(12);
  const text = `Rail has disabled one of your webhook endpoints, because nothing that was sent to it has arrived for days.

  Endpoint    ${endpoint_id}
  ${subject_label}${dead.program_id}${dead.partner_id === null ? '' : `\n  Postback of ${dead.partner_id}`}
  Address     ${addressOf(dead)}
  Failed      the last ${dead.failed} events, in every attempt
  Since       ${minuteOf(dead.first_failed_at)}
  Until       ${minuteOf(dead.last_failed_at)}
  Last error  ${errorOf(dead)}

Nothing is sent to it any more, and what was waiting for it is cancelled.
Its delivery log shows each attempt and what it answered:

  GET ${path}/deliveries

Once it answers with a 2xx within ten seconds, enable it again:

  POST ${path}/enable

Then what failed can be sent again:

${policy.lists_all ? replayMany(api, path, dead) : replayEach(api)}
`;
  return { subject: `Webhook endpoint disabled: ${new URL(dead.url).host}`, text };
}

const replayMany = (api: string, path: string, { first_failed_at }: DeadEndpoint): string => `  POST ${path}/replay
  {"failed_since": "${first_failed_at}"}

What happens while it is disabled is not kept for it; GET ${api}/events
lists all events of the last 30 days.`;

const replayEach = (api: string): string => `  POST ${api}/webhook_deliveries/{id}/replay

for each delivery. What happens while it is disabled is not kept for it.`;

/** Without the query, which is where receivers put their keys. */
function addressOf({ url }: DeadEndpoint): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

const errorOf = ({ last_error }: DeadEndpoint): string => last_error ?? 'none is logged.';

/** `2026-11-21 09:30 UTC` */
const minuteOf = (at: string): string => `${at.slice(0, 16).replace('T', ' ')} UTC`;
