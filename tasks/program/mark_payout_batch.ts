import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { Marking, markBatch } from '../../src/program/payouts/by_hand/mark_batch.ts';

/** Marks the payouts of a batch as paid, as a person has requested. */
export default taskOutsideTransaction({
  payload: z.object({
    ...{ organization_id: z.string(), request_id: z.string().nullable(), id: z.string() },
    marking: Marking,
  }),
  run: ({ payload: { marking, ...batch }, ...context }) => markBatch(batch, marking, context),
});
