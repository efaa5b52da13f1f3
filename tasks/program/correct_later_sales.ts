import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { correctLaterStep } from '../../src/program/correct_sales.ts';

/** Corrects the sales of a customer that come after one that was recorded late: some of them, and has the next ones done. */
export default task({
  payload: z.object({
    ...{ organization_id: z.string(), request_id: z.string().nullable() },
    ...{
      customer_id: z.string(),
      after: z.object({ at: z.string(), charge: z.string() }),
      moved_from: z.string().nullable(),
      adopts: z.boolean(),
      has_other_visit: z.boolean().default(false),
    },
  }),
  run: ({ tx, payload }) => correctLaterStep(tx, payload),
});
