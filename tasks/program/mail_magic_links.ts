import { z } from 'zod';
import { service_opening, task } from '../../src/core/jobs/task.ts';
import { mailMagicLinks } from '../../src/program/mail_magic_links.ts';

/** Mails links to sign in to the portal to the partners with an email address, if there are any. */
export default task({
  opening: service_opening,
  payload: z.object({ email: z.string(), language: z.string() }),
  run: ({ tx, payload, services }) => mailMagicLinks(tx, payload, services),
});
