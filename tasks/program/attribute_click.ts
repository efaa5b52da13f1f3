import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { attributePendingClicks } from '../../src/program/tracking/attribution.ts';

/** Turns a click into a referral, unless something has done so already that named the click, or another one of its visitor. */
export default task({
  payload: z.object({ organization_id: z.string(), click_id: z.string(), request_id: z.string().nullable() }),
  run: ({ tx, payload: { click_id } }) => attributePendingClicks(tx, click_id),
});
