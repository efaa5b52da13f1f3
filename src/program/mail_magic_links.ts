import sql from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';
import type { Services } from '../core/resource/services.ts';
import { statusesThat } from '../core/resource/states.ts';
import { inOneLine } from '../core/values/texts/one_line.ts';
import { queueMail } from '../mail/outgoing.ts';
import { createMagicLink, lifetime_minutes } from './partners/magic_link.ts';
import { languageOf, textsIn } from './partners/mails/languages.ts';
import { partner_states } from './partners/partner.ts';

/** The links that a partner may ask for in an hour. */
const most_an_hour = 5;

interface Known {
  organization_id: string;
  id: string;
  email: string;
  program: string;
  language_code: string | null;
}

/**
 * Mails links to sign in to the partners with an email address, one mail for each program, in the language of the partner or else of the page. Without an SMTP server there is none, because a mail that is
 * logged in place of being sent would put the link into the log.
 */
export async function mailMagicLinks(
  tx: Tx,
  { email, language }: { email: string; language: string },
  { mailer, base_url }: Services,
): Promise<void> {
  if (!mailer) return;
  const known = await tx.all<Known>(sql`
    select p.organization_id, p.id, p.email, p.language_code, g.name as program
    from program.partner p
    join program.program g on g.organization_id = p.organization_id and g.id = p.program_id
    where p.email_key = lower(${email}) and p.deleted_at is null and p.status = any(${statusesThat(partner_states, 'sign_in')})
      and (
        select count(*) from program.magic_link l
        where l.organization_id = p.organization_id and l.partner_id = p.id and l.created_at > now() - interval '1 hour'
      ) < ${most_an_hour}
    order by g.name, p.id
    limit 20
    for no key update of p`);
  for (const { organization_id, id, email: recipient, program, language_code } of known) {
    const { url } = await createMagicLink(tx, organization_id, id, base_url);
    const name = inOneLine(program).slice(0, 200);
    const texts = textsIn(languageOf(language_code ?? language));
    const { subject, paragraphs } = texts.sign_in({ program: name, url, minutes: lifetime_minutes });
    await queueMail(tx, { organization_id, recipient, subject, text: paragraphs.map((one) => `${one}\n`).join('\n') });
  }
}
