import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { release } from '../../src/program/processors/inbox.ts';
import { lockIds } from '../../src/program/processors/known.ts';

/** Works on what a billing processor sent before its ids were known here, or what was refused for a reason that may be gone. */
export default task({
  payload: z.object({ organization_id: z.string(), program_id: z.string(), external_ids: z.array(z.string()) }),
  async run({ tx, payload: { program_id, external_ids } }) {
    await lockIds(tx, program_id, external_ids);
    await release(tx, program_id, external_ids);
  },
});
