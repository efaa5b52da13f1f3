import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { correctTiers } from '../../src/program/correct_sales.ts';

/** Corrects the sales of a partner's month that a late one has moved to another tier: some of them, and has the next ones done. */
export default task({
  payload: z.object({
    ...{ organization_id: z.string(), request_id: z.string().nullable() },
    ...{ program_id: z.string(), partner_id: z.string(), month: z.string() },
    after: z.object({ at: z.string(), charge: z.string() }).nullable(),
  }),
  run: ({ tx, payload }) => correctTiers(tx, payload),
});
