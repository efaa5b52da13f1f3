/**
 * The email that a prospect would get, composed from the record by the functions that compose what is sent: nothing is kept. The ids of its message are made up,
 * so its unsubscribe link is of nobody.
 */
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { domainOf, id, objectName, text } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { notFound, Problem } from '../../core/values/problem.ts';
import type { Mail } from '../composing/mail.ts';
import { messageIdOf, replySubject, threadHeaders } from '../composing/message_ids.ts';
import { TemplateFault, type TemplateValues } from '../composing/template_fields.ts';
import type { Rendered } from '../composing/templates.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import { type SendFailure, send_failures } from '../sequences/sequence.ts';
import { footerOf } from '../unsubscribing/link.ts';
import { bestOf, why_not } from './best_address.ts';
import type { Campaign } from './campaign.ts';
import { type Step, templatesOf, textsOf, variantFor } from './step.ts';
import { type ProspectValues, prospect_values, sendingOf, templateValues } from './template_values.ts';

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

interface PreviewAsked {
  prospect_id: string;
  step_index: number;
  variant?: number | undefined;
}

interface Recipient extends ProspectValues {
  id: string;
  reason: SendFailure | null;
  email_address_id: string | null;
  address: Buffer;
  source_url: string | null;
  sequence_id: string | null;
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
export async function preview(tx: Tx, campaign: Campaign, asked: PreviewAsked, services: Services) {
  const { composeMail } = await import('../composing/mail.ts');
  const recipient = await recipientOf(tx, campaign, asked.prospect_id);
  const sender = await senderOf(tx, campaign, recipient);
  const brand = await sendingOf(tx, campaign.brand_id);
  const values = templateValues(recipient, brand, sender);
  const message_id = newId('fms');
  const { variant, ...rendered } = await renderStep(campaign, { ...asked, sequence_id: recipient.sequence_id }, values);
  const mail: Mail = {
    from: { name: sender.from_name, email: sender.email },
    to: services.vault.decrypt(recipient.address, recipient.email_address_id as string),
    reply_to: sender.reply_to,
    ...{ ...rendered, message_id: messageIdOf(message_id, domainOf(sender.email)) },
    ...previousHeaders(asked.step_index, domainOf(sender.email)),
    date: new Date(tx.now),
    footer: footerOf(await keyedHash(tx, services.vault), services.base_url, {
      ...{ organization_id: tx.organization_id, message_id, inbox_email: sender.email, brand },
      ...{ source_url: recipient.source_url, language_code: recipient.language_code },
    }),
    signature: sender.signature,
  };
  return shownOf(await composeMail(mail), { step_index: asked.step_index, variant, inbox_id: sender.id, to: mail.to });
}

async function recipientOf(tx: Tx, { id: campaign_id, brand_id, allow_risky }: Campaign, prospect_id: string) {
  const found = await tx.maybe<Recipient>(sql`
    select p.id, ${prospect_values}, ${why_not} as reason, best.id as email_address_id, best.address, best.source_url, s.id as sequence_id, s.inbox_id
    from recruitment.prospect p
    left join recruitment.sequence s
      on s.organization_id = p.organization_id and s.campaign_id = ${campaign_id} and s.prospect_id = p.id
    ${bestOf(allow_risky)}
    where p.organization_id = ${tx.organization_id} and p.id = ${prospect_id} and p.brand_id = ${brand_id}`);
  if (!found) throw notFound('prospect', prospect_id, 'prospect_id');
  if (found.email_address_id !== null && found.reason === null) return found;
  throw new Problem(
    'invalid_parameter',
    `The prospect cannot be emailed (${found.reason}): ${send_failures[found.reason ?? 'no_address']}. Use another prospect.`,
    {
      param: 'prospect_id',
    },
  );
}

/** The inbox of the prospect's sequence, else the first of the campaign that is connected, or is not. */
export async function senderOf(
  tx: Tx,
  { inbox_ids }: Campaign,
  { inbox_id }: { inbox_id: string | null },
): Promise<Sender> {
  const sender = await tx.maybe<Sender>(sql`
    select t.id, t.from_name, t.email, t.reply_to, t.signature from recruitment.inbox t
    where ${tenant(tx)} and (t.id = any(${inbox_ids}) or t.id = ${inbox_id}) and t.deleted_at is null
    order by t.id <> coalesce(${inbox_id}, ''), t.status <> 'connected', t.id
    limit 1`);
  if (sender) return sender;
  throw new Problem('invalid_state_transition', 'The campaign has no inbox. Set `inbox_ids` first.');
}

/** The message as readers see it. */
async function shownOf(raw: Buffer, about: { inbox_id: string; step_index: number; variant: number; to: string }) {
  const { default: PostalMime } = await import('postal-mime');
  const { headers, subject = '', text: plain = '', html = null } = await PostalMime.parse(raw);
  const { inbox_id, step_index, variant, to } = about;
  return {
    ...{ object: 'campaign_preview' as const, inbox_id, step_index, variant, to, subject },
    headers: headers.map(({ originalKey, value }) => ({ name: originalKey, value })),
    ...{ text: plain, html, raw: raw.toString('utf8') },
  };
}

/** The text that is asked for: without a variant, the one that a sequence gets, else the step's own. */
interface Asked {
  step_index: number;
  variant?: number | undefined;
  /** Null: the prospect has none. */
  sequence_id: string | null;
}

/** @throws Problem invalid_parameter for a step or a text that there is not, and where the template cannot be rendered */
export async function renderStep(
  campaign: Campaign,
  asked: Asked,
  values: TemplateValues,
): Promise<Rendered & { variant: number }> {
  const step = stepOf(campaign, asked);
  const variant = asked.variant ?? variantOf(step, asked);
  if (!textsOf(step)[variant]) throw outOfRange('variant', `The highest of the step is ${step.variants.length}.`);
  const rendered = await renderText(step, { step_index: asked.step_index, variant }, values);
  if (asked.step_index === 0) return { ...rendered, variant };
  const first = campaign.steps[0] as Step;
  const before = { step_index: 0, variant: variantOf(first, { ...asked, step_index: 0 }) };
  return { ...rendered, variant, subject: replySubject((await renderText(first, before, values)).subject) };
}

function stepOf({ steps }: Campaign, { step_index }: Asked): Step {
  const step = steps[step_index];
  if (step) return step;
  throw outOfRange(
    'step_index',
    steps.length === 0 ? 'The campaign has no steps.' : `The last step is ${steps.length - 1}.`,
  );
}

const outOfRange = (param: string, has: string): Problem =>
  new Problem('invalid_parameter', `'${param}' is too large. ${has}`, { param });

const variantOf = (step: Step, { step_index, sequence_id }: Asked): number =>
  sequence_id === null ? 0 : variantFor(step, { sequence_id, step_index });

async function renderText(
  step: Step,
  { step_index, variant }: { step_index: number; variant: number },
  values: TemplateValues,
) {
  const { renderTemplates } = await import('../composing/templates.ts');
  try {
    return renderTemplates(templatesOf(step, { step_index, variant }), values);
  } catch (error) {
    if (!(error instanceof TemplateFault)) throw error;
    const path = variant === 0 ? `steps.${step_index}` : `steps.${step_index}.variants.${variant - 1}`;
    const message = `'${path}.${error.field}', line ${error.line}: ${error.message} ${error.remedy}`;
    throw new Problem('invalid_parameter', message, { param: 'prospect_id' });
  }
}

/** The headers of a follow-up, whose emails before have ids that are made up. */
function previousHeaders(step_index: number, domain: string) {
  if (step_index === 0) return {};
  const ids = Array.from({ length: step_index }, () => messageIdOf(newId('fms'), domain));
  return threadHeaders({ message_id: ids.at(-1) as string, references: ids.slice(0, -1).join(' ') || null });
}
