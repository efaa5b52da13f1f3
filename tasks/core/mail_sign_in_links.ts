import { z } from 'zod';
import { service_opening, task } from '../../src/core/jobs/task.ts';
import { mailSignInLinks } from '../../src/pages/mail_sign_in_links.ts';

/** Mails links to sign in to the dashboard to the users with an email address, if there are any. */
export default task({
  opening: service_opening,
  payload: z.object({ email: z.string(), language: z.string() }),
  run: ({ tx, payload: { email }, services }) => mailSignInLinks(tx, email, services),
});
