import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { alsoOf, release, releaseOfSale } from '../../src/program/processors/inbox.ts';
import { lockIds } from '../../src/program/processors/known.ts';

/** Works on what a billing processor sent before its ids were known here, or what was refused for a reason that may be gone. */
export default task({
  payload: z.object({
    organization_id: z.string(),
    program_id: z.string(),
    external_ids: z.array(z.string()),
    /** The sale that was recorded by the id. */
    sale_id: z.string().optional(),
  }),
  async run({ tx, payload: { program_id, external_ids, sale_id } }) {
    const ids = sale_id === undefined ? external_ids : await alsoOf(tx, program_id, external_ids);
    await lockIds(tx, program_id, ids);
    if (sale_id !== undefined) await releaseOfSale(tx, program_id, { external_ids: ids, sale_id });
    await release(tx, program_id, external_ids);
  },
});
