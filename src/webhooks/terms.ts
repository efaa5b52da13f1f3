import type { DeliveryTerms } from '../core/description/openapi_webhooks.ts';
import type { Schedule } from '../core/jobs/schedule.ts';
import { most_endpoints, most_postbacks } from './endpoints/create_endpoint.ts';
import { listed, postbackFamilies } from './endpoints/postback.ts';
import { overlap_ms } from './endpoints/secret.ts';
import { switch_off } from './endpoints/switch_off.ts';
import { kept_days } from './events/event_log.ts';
import { type EventPolicy, subjectNoun } from './events/policy.ts';
import { waits_s } from './queue/delivery.ts';
import { retry_times } from './queue/due_retries.ts';
import { timeout_ms, user_agent } from './queue/send.ts';

/** Make the retries that are due. */
export const sweeps: Schedule[] = [
  { name: 'webhooks/enqueue_due_retries', cron: retry_times.half_hourly, missed: 'latest' },
  { name: 'webhooks/enqueue_due_retries_each_minute', cron: retry_times.every_minute, missed: 'latest' },
];

/** Returns the delivery terms that the description promises, read from the code that keeps them. */
export const terms = (policy: EventPolicy): DeliveryTerms => ({
  ...policy,
  subject: subjectNoun(policy),
  postbacks: postbacksOf(policy),
  user_agent,
  timeout_ms,
  waits_s,
  sweep_minutes: sweepMinutes(policy),
  overlap_ms,
  kept_days,
  most_endpoints,
  most_postbacks,
  switch_off,
});

function sweepMinutes({ retries }: EventPolicy): number[] {
  const [minutes = ''] = retry_times[retries].split(' ');
  return minutes === '*' ? [] : minutes.split(',').map(Number);
}

function postbacksOf({ owner, catalogue }: EventPolicy): DeliveryTerms['postbacks'] {
  if (!owner) return null;
  const families = listed(postbackFamilies(catalogue).map((family) => `\`${family}\``));
  return { noun: owner.resource.object.replaceAll('_', ' '), field: owner.field, families };
}
