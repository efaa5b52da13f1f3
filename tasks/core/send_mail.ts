import { z } from 'zod';
import { sendMail } from '../../src/core/mail.ts';
import { task } from '../../src/core/task.ts';

/** Sends a mail that was queued. */
export default task({
  payload: z.object({ organization_id: z.string(), id: z.string() }),
  run: (mail, context) => sendMail(mail, context),
});
