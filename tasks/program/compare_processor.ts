import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { compareDay } from '../../src/program/processors/compare.ts';

/** Compares a day of one connection with what its processor says that it moved. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), id: z.string(), day: z.iso.date() }),
  run: ({ payload, ...context }) => compareDay(payload, context),
});
