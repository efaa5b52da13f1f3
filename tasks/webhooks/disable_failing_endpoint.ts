import { z } from 'zod';
import { service_opening, task } from '../../src/core/jobs/task.ts';
import { products } from '../../src/products.ts';
import { disableFailingEndpoint } from '../../src/webhooks/endpoints/switch_off.ts';
import { endpointDisabled } from '../../src/webhooks/queue/metrics.ts';

const policies = products.map(({ events }) => events);

/** Switches an endpoint off that has failed for too long. */
export default task({
  payload: z.object({ endpoint_id: z.string() }),
  opening: service_opening,
  async run({ tx, payload: { endpoint_id }, services, log }) {
    const policy = policies.find(({ endpoint_prefix }) => endpoint_id.startsWith(`${endpoint_prefix}_`));
    if (!policy) throw new Error(`No product has endpoints such as ${endpoint_id}.`);
    const dead = await disableFailingEndpoint(tx, policy, endpoint_id, services.base_url);
    if (!dead) return;
    const { organization_id, failed, first_failed_at } = dead;
    endpointDisabled();
    log.info({ organization_id, endpoint_id, failed, first_failed_at }, 'switched off an endpoint that keeps failing');
  },
});
