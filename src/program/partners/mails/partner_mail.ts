import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../../core/postgres/transaction.ts';
import type { Services } from '../../../core/resource/services.ts';
import { inOneLine } from '../../../core/values/texts/one_line.ts';
import { queueMail } from '../../../mail/outgoing.ts';
import { payout_methods } from '../../programs/program.ts';
import { languageOf, textsIn } from './languages.ts';
import { rateIn, type ToldRate } from './rate_text.ts';
import type { MailTexts, Written } from './texts.ts';

const rate = z.object({ rate_type: z.enum(['percent', 'fixed']), rate_value: z.int() }).nullable();
const change = z.object({ before: rate, after: rate });

/** The facts of a mail to a partner. */
const about = z.discriminatedUnion('kind', [
  z.object({ kind: z.enum(['applied', 'approved', 'welcome', 'first_referral']) }),
  z.object({ kind: z.literal('rejected'), application_id: z.string() }),
  z.object({ kind: z.literal('new_referrals'), count: z.int() }),
  z.object({ kind: z.literal('more_referrals'), count: z.int(), day: z.string() }),
  z.object({ kind: z.literal('rate_changed'), first: change, renewal: change }),
  z.object({
    kind: z.literal('payout_method_changed'),
    method: z.enum(payout_methods),
    hint: z.string(),
    held_until: z.string().nullable(),
    /** The address to write to in place of the partner's own, encrypted with the mail's id as its context. */
    sealed_address: z.string().optional(),
  }),
]);

export type MailAbout = z.infer<typeof about>;

/** A mail to a partner, as a job carries it: no address and no words of theirs. */
export const PartnerMail = z.object({
  organization_id: z.string(),
  /** Made with the fact that is told, so that a job which runs twice writes the mail once. */
  id: z.string(),
  partner_id: z.string(),
  /** The time of the fact: after a restore, what is older is not told again. */
  at: z.string(),
  about,
});

/** A person who is written to, as far as they are known. */
export interface Addressee {
  id: string;
  recipient: string;
  language_code: string | null;
  program: string;
  currency: string;
  terms_url: string | null;
  terms_version: string | null;
}

/** The columns of an addressee, of the partner `p` and the program `g`. */
export const addressee = sql`p.id, p.email as recipient, p.language_code, g.name as program, g.currency, g.terms_url, g.terms_version`;

/** The partners `p` with their programs `g` who can be written to. */
export const addressees: Sql = sql`
  program.partner p
  join program.program g on g.organization_id = p.organization_id and g.id = p.program_id and p.deleted_at is null`;

/** Facts from before a restore may have been told before it. */
export const isNotForgotten = (at: string): Sql =>
  sql`not exists (select from core.hold() h where ${at}::timestamptz < h.restored_at)`;

/** Writes the mail of a job. Nothing where the partner is deleted, or the program's `partner_emails` is off and nobody's money is in danger. */
export async function writePartnerMail(
  tx: Tx,
  services: Pick<Services, 'vault' | 'base_url'>,
  { organization_id, id, partner_id, at, about }: z.infer<typeof PartnerMail>,
): Promise<void> {
  const is_warning = about.kind === 'payout_method_changed';
  const to = await tx.maybe<Addressee>(sql`
    select ${addressee} from ${addressees}
    where p.organization_id = ${organization_id} and p.id = ${partner_id} and (g.partner_emails or ${is_warning}) and ${isNotForgotten(at)}`);
  if (!to) return;
  const reason = about.kind === 'rejected' ? await reasonOf(tx, organization_id, about.application_id) : '';
  const sealed = is_warning ? about.sealed_address : undefined;
  const recipient = sealed === undefined ? to.recipient : services.vault.decrypt(Buffer.from(sealed, 'base64'), id);
  await queueMail(tx, { organization_id, id, recipient, ...composed({ ...to, reason }, about, services) });
}

async function reasonOf(tx: Tx, organization_id: string, application_id: string): Promise<string> {
  const { reason } = await tx.one<{ reason: string }>(sql`
    select coalesce(a.rejection_reason, '') as reason
    from program.application a where a.organization_id = ${organization_id} and a.id = ${application_id}`);
  return reason;
}

/** The subject and the text of a mail, in the language of the partner. */
export function composed(
  to: Omit<Addressee, 'id'> & { reason?: string },
  about: MailAbout,
  { base_url }: Pick<Services, 'base_url'>,
): { subject: string; text: string } {
  const language = languageOf(to.language_code);
  const texts = textsIn(language);
  const program = inOneLine(to.program);
  const portal_url = `${base_url}/portal`;
  const { subject, paragraphs } = written(texts, language, { ...to, program, portal_url }, about);
  const joins = about.kind === 'approved' || about.kind === 'welcome';
  const terms =
    joins && to.terms_url !== null ? [texts.terms({ url: to.terms_url, version: to.terms_version ?? '1' })] : [];
  const is_optional = about.kind.endsWith('_referral') || about.kind.endsWith('_referrals');
  const settings = is_optional ? [texts.settings(`${portal_url}/notifications`)] : [];
  const text = [texts.greeting, ...paragraphs, ...terms, ...settings].map((one) => `${one}\n`).join('\n');
  return { subject, text };
}

function written(
  texts: MailTexts,
  language: string,
  to: Omit<Addressee, 'id'> & { portal_url: string; reason?: string },
  about: MailAbout,
): Written {
  const { reason = '' } = to;
  switch (about.kind) {
    case 'rejected':
      return texts.rejected({ ...to, reason });
    case 'new_referrals':
      return texts.new_referrals({ ...to, count: about.count });
    case 'more_referrals':
      return texts.more_referrals({
        ...to,
        count: about.count,
        day: timeIn(language, about.day, { dateStyle: 'long' }),
      });
    case 'rate_changed':
      return texts.rate_changed({ ...to, rates: rateLines(texts, language, to.currency, about) });
    case 'payout_method_changed': {
      const { hint, held_until } = about;
      const until =
        held_until === null ? null : timeIn(language, held_until, { dateStyle: 'long', timeStyle: 'short' });
      return texts.payout_method_changed({ ...to, method: texts.methods[about.method], hint, held_until: until });
    }
    default:
      return texts[about.kind](to);
  }
}

const timeIn = (language: string, at: string, style: Intl.DateTimeFormatOptions): string =>
  new Intl.DateTimeFormat(language, { ...style, timeZone: 'UTC' }).format(new Date(at));

type Change = z.infer<typeof change>;

function rateLines(
  { rates }: MailTexts,
  language: string,
  currency: string,
  { first, renewal }: { first: Change; renewal: Change },
): string[] {
  const text = (one: ToldRate) => (one === null ? rates.none : rateIn(language, one, currency));
  const line = (name: string, { before, after }: Change) => `${name}: ${text(before)} → ${text(after)}`;
  if (isSameRate(first.before, renewal.before) && isSameRate(first.after, renewal.after))
    return [line(rates.all, first)];
  return [
    ...(isSameRate(first.before, first.after) ? [] : [line(rates.first, first)]),
    ...(isSameRate(renewal.before, renewal.after) ? [] : [line(rates.renewal, renewal)]),
  ];
}

export const isSameRate = (one: ToldRate, other: ToldRate): boolean =>
  one?.rate_type === other?.rate_type && one?.rate_value === other?.rate_value;
