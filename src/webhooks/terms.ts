import type { DeliveryTerms } from '../core/openapi_webhooks.ts';
import { waits_s } from './delivery.ts';
import { kept_days } from './delivery_log.ts';
import { most_per_program, overlap_ms } from './endpoint.ts';
import { timeout_ms, user_agent } from './send.ts';
import { switch_off } from './switch_off.ts';

/** What the description promises of delivery: read off the code that keeps it. */
export const terms = (sweep_cron: string): DeliveryTerms => ({
  user_agent,
  timeout_ms,
  waits_s,
  sweep_minutes: (sweep_cron.split(' ')[0] as string).split(',').map(Number),
  overlap_ms,
  kept_days,
  most_endpoints: most_per_program,
  switch_off,
});
