/** The email that a prospect would get, as it would be sent: nothing is kept. */
import PostalMime from 'postal-mime';
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../../../core/postgres/transaction.ts';
import { tenant } from '../../../../core/resource/resource.ts';
import type { Services } from '../../../../core/resource/services.ts';
import { id, objectName, text } from '../../../../core/values/fields.ts';
import { newId } from '../../../../core/values/id.ts';
import { notFound, Problem } from '../../../../core/values/problem.ts';
import { keyedHash } from '../../../prospects/keyed_hash.ts';
import { unsubscribeMailto } from '../../composing/footer.ts';
import { composeMail, type Mail } from '../../composing/mail.ts';
import { TemplateFault } from '../../composing/template_fault.ts';
import type { TemplateValues } from '../../composing/template_fields.ts';
import { renderTemplates } from '../../composing/templates.ts';
import { messageIdOf, replySubject, threadHeaders } from '../../composing/threads.ts';
import { unsubscribeUrl } from '../../unsubscribing/link.ts';
import type { Campaign } from '../records/campaign.ts';
import { type Step, textsOf } from '../records/step.ts';
import { bestOf, why_not } from '../scheduling/best_address.ts';
import {
  type ProspectValues,
  prospect_values,
  type Sending,
  sending_values,
  templateValues,
} from './template_values.ts';

export const Preview = z
  .object({
    object: objectName('campaign_preview'),
    inbox_id: id('fin').describe('The inbox that it would be sent from.'),
    step_index: z.int().describe('The step.'),
    variant: z.int().describe("The text of the step: 0 is the step's own, 1 its first variant."),
    to: text.describe('The address that it would be sent to.'),
    subject: text.describe('The subject.'),
    headers: z
      .array(z.object({ name: text.describe('The name.'), value: text.describe('The value, on one line.') }))
      .describe(
        'The headers, in their order. The ids of its message, which are in Message-ID and the unsubscribe addresses, are made up.',
      ),
    text: text.describe('The plain text, with the footer.'),
    html: text.nullable().describe('The HTML, with the footer.'),
    raw: text.describe('The whole message as it would be sent (RFC 5322).'),
  })
  .meta({ description: 'The email that a prospect would get.' });

export interface Asked {
  prospect_id: string;
  step_index: number;
  variant: number;
}

interface Recipient extends ProspectValues {
  id: string;
  reason: string | null;
  email_address_id: string | null;
  address: Buffer;
  source_url: string | null;
  inbox_id: string | null;
}

interface Sender {
  id: string;
  from_name: string;
  email: string;
  reply_to: string | null;
  signature: string | null;
}

/** @throws Problem resource_not_found; invalid_parameter where the prospect or the template cannot be used; invalid_state_transition without an inbox */
export async function preview(tx: Tx, campaign: Campaign, asked: Asked, services: Services) {
  const step = stepOf(campaign, asked);
  const recipient = await recipientOf(tx, campaign, asked.prospect_id);
  const sender = await senderOf(tx, campaign, recipient);
  const brand = await tx.one<Sending>(sql`
    select ${sending_values} from recruitment.brand b
    where b.organization_id = ${tx.organization_id} and b.id = ${campaign.brand_id}`);
  const values = templateValues(recipient, brand, sender);
  const message_id = newId('fms');
  const rendered = renderedOf(step, asked, values);
  const previous = previousOf(campaign, asked, values, sender);
  const mail: Mail = {
    from: { name: sender.from_name, email: sender.email },
    to: services.vault.decrypt(recipient.address, recipient.email_address_id as string),
    reply_to: sender.reply_to,
    ...{ text: rendered.text, html: rendered.html, message_id: messageIdOf(message_id, domainOf(sender.email)) },
    ...{ subject: previous?.subject ?? rendered.subject, ...previous?.headers },
    date: new Date(tx.now),
    footer: {
      unsubscribe_url: unsubscribeUrl(await keyedHash(tx, services.vault), services.base_url, {
        ...{ organization_id: tx.organization_id, message_id },
      }),
      unsubscribe_mailto: unsubscribeMailto(sender.email, message_id),
      sender_company: brand.sender_company ?? brand.name,
      ...{ postal_address: brand.postal_address ?? '', privacy_url: brand.privacy_url ?? '' },
      ...{ found_at_url: recipient.source_url, language: recipient.language_code ?? 'en' },
    },
    signature: sender.signature,
  };
  return shownOf(await composeMail(mail), { ...asked, inbox_id: sender.id, to: mail.to });
}

function stepOf({ steps }: Campaign, { step_index, variant }: Asked): Step {
  const step = steps[step_index];
  if (!step) throw outOfRange('step_index', `The campaign has ${steps.length} steps.`);
  if (!textsOf(step)[variant]) throw outOfRange('variant', `The step has ${step.variants.length} variants.`);
  return step;
}

const outOfRange = (param: string, has: string): Problem =>
  new Problem('invalid_parameter', `'${param}' is too large. ${has}`, { param });

async function recipientOf(tx: Tx, { id: campaign_id, brand_id, allow_risky }: Campaign, prospect_id: string) {
  const found = await tx.maybe<Recipient>(sql`
    select p.id, ${prospect_values}, ${why_not} as reason, best.id as email_address_id, best.address, best.source_url, (
      select s.inbox_id from recruitment.sequence s
      where s.organization_id = p.organization_id and s.campaign_id = ${campaign_id} and s.prospect_id = p.id
    ) as inbox_id
    from recruitment.prospect p
    ${bestOf(allow_risky)}
    where p.organization_id = ${tx.organization_id} and p.id = ${prospect_id} and p.brand_id = ${brand_id}`);
  if (!found) throw notFound('prospect', prospect_id, 'prospect_id');
  if (found.email_address_id !== null && found.reason === null) return found;
  throw new Problem(
    'invalid_parameter',
    `'prospect_id' cannot be written to (${found.reason}). Use another prospect.`,
    {
      param: 'prospect_id',
    },
  );
}

/** The inbox of the prospect's sequence, else the first of the campaign that is connected, or is not. */
async function senderOf(tx: Tx, { inbox_ids }: Campaign, { inbox_id }: Recipient): Promise<Sender> {
  const sender = await tx.maybe<Sender>(sql`
    select t.id, t.from_name, t.email, t.reply_to, t.signature from recruitment.inbox t
    where ${tenant(tx)} and (t.id = any(${inbox_ids}) or t.id = ${inbox_id}) and t.deleted_at is null
    order by t.id <> coalesce(${inbox_id}, ''), t.status <> 'connected', t.id
    limit 1`);
  if (sender) return sender;
  throw new Problem('invalid_state_transition', 'The campaign has no inbox. Set `inbox_ids` first.');
}

/** @throws Problem invalid_parameter, which names the template */
function renderedOf(step: Step, { step_index, variant }: Asked, values: TemplateValues) {
  try {
    return renderTemplates(textsOf(step)[variant] as ReturnType<typeof textsOf>[number], values);
  } catch (error) {
    if (!(error instanceof TemplateFault)) throw error;
    const path = variant === 0 ? `steps.${step_index}` : `steps.${step_index}.variants.${variant - 1}`;
    throw new Problem(
      'invalid_parameter',
      `'${path}.${error.field}', line ${error.line}: ${error.message} ${error.remedy}`,
      { param: 'prospect_id' },
    );
  }
}

/** A follow-up answers the email before: its subject is that of the first. */
function previousOf(campaign: Campaign, { step_index }: Asked, values: TemplateValues, { email }: Sender) {
  if (step_index === 0) return undefined;
  const first = renderedOf(campaign.steps[0] as Step, { prospect_id: '', step_index: 0, variant: 0 }, values);
  const ids = Array.from({ length: step_index }, () => messageIdOf(newId('fms'), domainOf(email)));
  const references = ids.slice(0, -1).join(' ') || null;
  return {
    subject: replySubject(first.subject),
    headers: threadHeaders({ message_id: ids.at(-1) as string, references }),
  };
}

const domainOf = (address: string): string => address.slice(address.lastIndexOf('@') + 1);

/** The message as readers see it. */
async function shownOf(raw: Buffer, about: { inbox_id: string; step_index: number; variant: number; to: string }) {
  const { headers, subject = '', text: plain = '', html = null } = await PostalMime.parse(raw);
  const { inbox_id, step_index, variant, to } = about;
  return {
    ...{ object: 'campaign_preview' as const, inbox_id, step_index, variant, to, subject },
    headers: headers.map(({ originalKey, value }) => ({ name: originalKey, value })),
    ...{ text: plain, html, raw: raw.toString('utf8') },
  };
}
