import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { release } from '../../src/program/processors/inbox.ts';
import { lockIds } from '../../src/program/processors/known.ts';

/** Works on what a billing processor sent about a customer before anybody was credited with them. */
export default task({
  payload: z.object({ organization_id: z.string(), program_id: z.string(), external_customer_id: z.string() }),
  async run({ tx, payload: { program_id, external_customer_id } }) {
    await lockIds(tx, program_id, [external_customer_id]);
    await release(tx, program_id, [external_customer_id]);
  },
});
