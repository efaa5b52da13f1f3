import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { eraseFromEvents } from '../../src/program/personal_data.ts';

/** Erases a customer from the events that the request has not looked through: some of them, and has the next ones done. */
export default task({
  payload: z.object({
    ...{ organization_id: z.string(), request_id: z.string().nullable() },
    ...{
      customer_id: z.string(),
      program_id: z.string(),
      ids: z.array(z.string()),
      since_ms: z.number(),
      after: z.string(),
    },
  }),
  run: ({ tx, payload }) => eraseFromEvents(tx, payload),
});
