import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { sendMail } from '../../src/mail/outgoing.ts';

/** Sends a mail that was queued. */
export default task({
  payload: z.object({ organization_id: z.string(), id: z.string() }),
  run: (mail, context) => sendMail(mail, context),
});
