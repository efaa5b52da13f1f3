import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { sendMail } from '../../src/mail/outgoing.ts';

/** Sends a mail that was queued. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), id: z.string() }),
  run: ({ payload, ...context }) => sendMail(payload, context),
});
