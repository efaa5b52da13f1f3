import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { runImport } from '../../src/recruitment/imports/run_import.ts';

/** Imports prospects from a file. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), request_id: z.string().nullable(), id: z.string() }),
  run: ({ payload, ...context }) => runImport(payload, context),
});
