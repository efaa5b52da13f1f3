/**
 * Invites prospects to the affiliate program: marked, or by email. `affiliate.invited` is emitted once, when the email is queued. A prospect is sent one invitation,
 * unless it failed or bounced. The link to join is the website of the linked program where the request names none.
 */
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { documentedEnum, id, notBlank, oneLine, requireState, url } from '../../core/values/fields.ts';
import { Problem } from '../../core/values/problem.ts';
import { linkedProgram } from '../../program/activation.ts';
import { type Actor, actorOf } from '../brands/acting.ts';
import { type Brand, brands } from '../brands/brand.ts';
import { base_path } from '../events/base_path.ts';
import { inboxes } from '../inboxes/inbox.ts';
import { requireFeature } from '../plan/plan.ts';
import { holdSuppressions } from '../prospects/barred_site.ts';
import { markInvited } from '../prospects/invite.ts';
import { type Prospect, prospects } from '../prospects/prospect.ts';
import { bestAddressOf, sendMessage } from '../sending/send_message.ts';

const Invitation = z.strictObject({
  via: documentedEnum({
    mark: 'you invite the prospect yourself, and no email is sent',
    email: 'an email is sent from `inbox_id`',
  }),
  inbox_id: id('fin').optional().describe('The inbox that sends it. Required with `email`.'),
  subject: oneLine(255).optional().describe('The subject. By default, a subject in the language of the prospect.'),
  text: notBlank(20_000)
    .optional()
    .describe(
      'The text, in which `{{ join_url }}` is replaced by the link to join. Without it, the link is added at the end. By default, a text in the language of the prospect.',
    ),
  join_url: url
    .optional()
    .describe(
      'Where the prospect joins. By default, the website of the program that the brand is linked to. `rail_invitation` is added to its query: send its value as `invitation_token` when you create the partner.',
    ),
});
type Invitation = z.infer<typeof Invitation>;
const of_email = ['inbox_id', 'subject', 'text', 'join_url'] as const;

export const inviteOperations: Operation[] = [
  operation({
    name: 'prospects.invite',
    method: 'POST',
    path: `${base_path}/prospects/{id}/invite`,
    scope: 'prospects:write',
    summary: 'Invites a prospect to the affiliate program by email, or marks a prospect as invited.',
    doc: 'Emits `affiliate.invited`, unless the prospect was invited before. With `email`, the email is queued, and is sent as soon as the inbox is free; the event is emitted when it is queued. The email ends with the unsubscribe link and the postal address of the brand. It counts toward the limits of the inbox, but is also sent when they are reached. A prospect is sent one invitation: a repeated request sends none, unless the first one failed. A prospect who is barred or unsubscribed answers 409 `suppressed`. If no usable address is known, the inbox is disconnected, or the brand has no `postal_address` or `privacy_url`, the response is 409 `invalid_state_transition`.',
    params: idParams,
    body: Invitation,
    reply: prospects.schema,
    errors: ['sample_prospect', 'suppressed', 'invalid_state_transition', 'feature_not_in_plan'],
    async run({ tx, params, body, caller, services: { vault } }) {
      if (body.inbox_id !== undefined) await inboxes.get(tx, body.inbox_id, { param: 'inbox_id' });
      requireFields(body);
      const by = await actorOf(tx, caller);
      await holdSuppressions(tx);
      const prospect = await prospects.get(tx, params.id, { lock: true });
      if (body.via === 'mark') return markInvited(tx, prospect, by);
      return inviteByEmail(tx, vault, prospect, body, by);
    },
  }),
];

/** @throws Problem missing_parameter, invalid_parameter */
function requireFields(body: Invitation): void {
  if (body.via === 'email' && body.inbox_id === undefined) {
    const param = 'inbox_id';
    throw new Problem('missing_parameter', "'inbox_id' is required if 'via' is 'email'.", { param });
  }
  const param = body.via === 'mark' ? of_email.find((field) => body[field] !== undefined) : undefined;
  if (param) throw new Problem('invalid_parameter', `'${param}' is for 'via' 'email'. Leave it out.`, { param });
}

async function inviteByEmail(
  tx: Tx,
  vault: Vault,
  prospect: Prospect,
  asked: Invitation,
  by: Actor,
): Promise<Prospect> {
  await requireFeature(tx, 'outreach');
  const email_address_id = await bestAddressOf(tx, prospect);
  if (await isInvitedByEmail(tx, prospect.id)) return prospect;
  const brand = await brands.get(tx, prospect.brand_id);
  requireFooter(brand);
  const invited = await markInvited(tx, prospect, by);
  const join_url = withInvitation(asked.join_url ?? (await joinUrlOf(tx, brand)), invited);
  await sendMessage(tx, vault, {
    ...{ purpose: 'invitation', inbox_id: asked.inbox_id as string, brand_id: brand.id, prospect_id: prospect.id },
    ...{ thread_id: null, email_address_id, body_html: null, ...textOf(prospect, brand, asked, join_url) },
  });
  return invited;
}

/** The link by which it is seen who joined. */
function withInvitation(join_url: string, { invitation_token }: Prospect): string {
  const link = new URL(join_url);
  if (invitation_token !== null) link.searchParams.set('rail_invitation', invitation_token);
  return link.href;
}

async function isInvitedByEmail(tx: Tx, prospect_id: string): Promise<boolean> {
  const sent = await tx.maybe(sql`
    select t.id from recruitment.message t
    where ${tenant(tx)} and t.prospect_id = ${prospect_id} and t.purpose = 'invitation' and t.state not in ('failed', 'cancelled', 'bounced')
    limit 1`);
  return sent !== undefined;
}

function requireFooter({ postal_address, privacy_url }: Brand): void {
  requireState(
    postal_address !== null && privacy_url !== null,
    'The brand has no postal address or no privacy notice, which the email must name. Set `postal_address` and `privacy_url` of the brand.',
  );
}

function textOf(
  { name, language_code }: Prospect,
  brand: Brand,
  asked: Invitation,
  join_url: string,
): { subject: string; body_text: string } {
  const usual = invitationText({ language_code, name, brand: brand.name, join_url });
  const text = (asked.text ?? usual.text).replaceAll(/\{\{\s*join_url\s*\}\}/g, () => join_url);
  const body_text = text.includes(join_url) ? text : `${text}\n\n${join_url}`;
  return { subject: asked.subject ?? usual.subject, body_text };
}

/** @throws Problem missing_parameter where the brand is linked to no program */
async function joinUrlOf(tx: Tx, { program_id }: Brand): Promise<string> {
  if (program_id !== null) return (await linkedProgram(tx, program_id)).website_url;
  const param = 'join_url';
  throw new Problem('missing_parameter', "'join_url' is required, because the brand is linked to no program.", {
    param,
  });
}

/** The texts of an invitation in the languages of outreach, where the request gives none. */
interface Words {
  subject: string;
  greeting: string;
  text: string;
}

const words: Readonly<Record<string, Words>> = {
  en: {
    subject: 'Invitation to the affiliate program of {brand}',
    greeting: 'Hello',
    text: 'We would like to invite you to the affiliate program of {brand}.\n\nJoin here: {join_url}',
  },
  de: {
    subject: 'Einladung zum Partnerprogramm von {brand}',
    greeting: 'Guten Tag',
    text: 'Wir möchten Sie zum Partnerprogramm von {brand} einladen.\n\nHier können Sie sich anmelden: {join_url}',
  },
  fr: {
    subject: 'Invitation au programme d’affiliation de {brand}',
    greeting: 'Bonjour',
    text: 'Nous souhaitons vous inviter à rejoindre le programme d’affiliation de {brand}.\n\nPour vous inscrire : {join_url}',
  },
  es: {
    subject: 'Invitación al programa de afiliados de {brand}',
    greeting: 'Hola',
    text: 'Nos gustaría invitarle a unirse al programa de afiliados de {brand}.\n\nPuede inscribirse aquí: {join_url}',
  },
  it: {
    subject: 'Invito al programma di affiliazione di {brand}',
    greeting: 'Buongiorno',
    text: 'Desideriamo invitarLa al programma di affiliazione di {brand}.\n\nPuò iscriversi qui: {join_url}',
  },
  pt: {
    subject: 'Convite para o programa de afiliados de {brand}',
    greeting: 'Olá',
    text: 'Gostaríamos de lhe propor a participação no programa de afiliados de {brand}.\n\nInscreva-se aqui: {join_url}',
  },
};

interface Invited {
  language_code: string | null;
  /** The name of the prospect. */
  name: string | null;
  brand: string;
  join_url: string;
}

/** Writes an invitation in the prospect's language if it is one of the six, else in English. */
function invitationText({ language_code, name, brand, join_url }: Invited): { subject: string; text: string } {
  const { subject, greeting, text } = words[language_code?.slice(0, 2).toLowerCase() ?? ''] ?? (words.en as Words);
  const filled = (template: string) =>
    template.replace(/\{(brand|join_url)\}/g, (_, field) => (field === 'brand' ? brand : join_url));
  return { subject: filled(subject), text: `${greeting}${name ? ` ${name}` : ''},\n\n${filled(text)}` };
}
