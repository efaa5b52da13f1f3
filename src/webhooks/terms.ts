import type { DeliveryTerms } from '../core/description/openapi_webhooks.ts';
import type { Schedule } from '../core/jobs/schedule.ts';
import { most_endpoints } from './endpoints/create_endpoint.ts';
import { listed, postbackFamilies } from './endpoints/postback.ts';
import { overlap_ms } from './endpoints/secret.ts';
import { switch_off } from './endpoints/switch_off.ts';
import { kept_days } from './events/event_log.ts';
import { type EventPolicy, subjectNoun } from './events/policy.ts';
import { waits_s } from './queue/delivery.ts';
import { timeout_ms, user_agent } from './queue/send.ts';

/** Makes the retries that are due. */
export const sweep: Schedule = { name: 'webhooks/enqueue_due_retries', cron: '1,31 * * * *', missed: 'latest' };

/** What the description promises of a product's webhooks: read off the code that keeps it. */
export const terms = (policy: EventPolicy): DeliveryTerms => ({
  ...policy,
  subject: subjectNoun(policy),
  postbacks: postbacksOf(policy),
  user_agent,
  timeout_ms,
  waits_s,
  sweep_minutes: (sweep.cron.split(' ')[0] as string).split(',').map(Number),
  overlap_ms,
  kept_days,
  most_endpoints,
  switch_off,
});

function postbacksOf({ owner, catalogue }: EventPolicy): DeliveryTerms['postbacks'] {
  if (!owner) return null;
  const families = listed(postbackFamilies(catalogue).map((family) => `\`${family}\``));
  return { noun: owner.resource.object.replaceAll('_', ' '), field: owner.field, families };
}
