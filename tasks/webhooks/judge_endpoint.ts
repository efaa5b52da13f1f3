import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { judgeEndpoint } from '../../src/webhooks/endpoints/switch_off.ts';

/** Switches an endpoint off that has failed for too long. */
export default task({
  payload: z.object({ endpoint_id: z.string() }),
  async run({ endpoint_id }, { store, services, log }) {
    const dead = await transaction(store, { organization_id: null, request_id: null }, (tx) =>
      judgeEndpoint(tx, endpoint_id, services.base_url),
    );
    if (!dead) return;
    const { organization_id, failed, first_failed_at } = dead;
    log.info({ organization_id, endpoint_id, failed, first_failed_at }, 'switched off an endpoint that keeps failing');
  },
});
