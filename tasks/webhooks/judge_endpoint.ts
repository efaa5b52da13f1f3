import { z } from 'zod';
import { service_opening, task } from '../../src/core/jobs/task.ts';
import { judgeEndpoint } from '../../src/webhooks/endpoints/switch_off.ts';

/** Switches an endpoint off that has failed for too long. */
export default task({
  payload: z.object({ endpoint_id: z.string() }),
  opening: service_opening,
  async run({ tx, payload: { endpoint_id }, services, log }) {
    const dead = await judgeEndpoint(tx, endpoint_id, services.base_url);
    if (!dead) return;
    const { organization_id, failed, first_failed_at } = dead;
    log.info({ organization_id, endpoint_id, failed, first_failed_at }, 'switched off an endpoint that keeps failing');
  },
});
