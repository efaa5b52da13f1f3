import type { DeliveryTerms } from '../core/description/openapi_webhooks.ts';
import { most_endpoints } from './endpoints/create_endpoint.ts';
import { overlap_ms } from './endpoints/secret.ts';
import { switch_off } from './endpoints/switch_off.ts';
import { kept_days } from './events/event_log.ts';
import { waits_s } from './queue/delivery.ts';
import { timeout_ms, user_agent } from './queue/send.ts';

/** What the description promises of delivery: read off the code that keeps it. */
export const terms = (sweep_cron: string): DeliveryTerms => ({
  user_agent,
  timeout_ms,
  waits_s,
  sweep_minutes: (sweep_cron.split(' ')[0] as string).split(',').map(Number),
  overlap_ms,
  kept_days,
  most_endpoints,
  switch_off,
});
