import { link_minutes, makeSignInLinks } from '../core/access/session.ts';
import type { Tx } from '../core/postgres/transaction.ts';
import type { Services } from '../core/resource/services.ts';
import { inOneLine } from '../core/values/texts/one_line.ts';
import { queueMail } from '../mail/outgoing.ts';

/**
 * Mails links to sign in to the users with an email address, one mail for each organization. Without an SMTP server there is none: a mail that is logged
 * in place of being sent would put the link into the log, and the operator has `npx --no rail user sign-in`.
 */
export async function mailSignInLinks(tx: Tx, email: string, { mailer, base_url }: Services): Promise<void> {
  if (!mailer) return;
  for (const { organization_id, organization, email: recipient, token } of await makeSignInLinks(tx, email)) {
    const name = inOneLine(organization).slice(0, 200);
    const lines = [
      `Open this page to sign in to the dashboard of ${name}:`,
      '',
      `${base_url}/dashboard/sign_in?token=${token}`,
      '',
      `The link works once, within ${link_minutes} minutes. If you did not ask for it, ignore this mail: nobody can sign in without it.`,
    ];
    await queueMail(tx, {
      organization_id,
      recipient,
      subject: `Sign in to ${name}`,
      text: `${lines.join('\n')}\n`,
    });
  }
}
