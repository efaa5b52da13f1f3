/** A test of a campaign: an email of it to somebody of the team, by the way that every email goes. */
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { email, id } from '../../core/values/fields.ts';
import { notFound, Problem } from '../../core/values/problem.ts';
import { teamMembers } from '../brands/team_member.ts';
import { type Campaign, campaigns } from '../campaigns/campaign.ts';
import { renderStep, senderOf } from '../campaigns/preview.ts';
import { step_index, variant } from '../campaigns/step.ts';
import { type ProspectValues, prospect_values, sendingOf, templateValues } from '../campaigns/template_values.ts';
import { base_path } from '../events/base_path.ts';
import { holdSuppressions } from '../prospects/barred_site.ts';
import { refuseSample } from '../prospects/prospect.ts';
import { sendMessage } from '../sending/send_message.ts';
import { type Message, messages } from '../sequences/message.ts';

const Body = z.strictObject({
  step_index,
  variant: variant.default(0).describe("The text: 0 is the step's own, 1 its first variant."),
  member_id: id('tm').optional().describe('The team member who gets it.'),
  email: email.optional().describe('The address of a team member, instead of `member_id`.'),
  prospect_id: id('fdi')
    .optional()
    .describe(
      'The prospect that it is rendered for. Default: the first prospect of the campaign, or an example if it has none.',
    ),
});
type Body = z.infer<typeof Body>;

export const testEmailOperations: Operation[] = [
  operation({
    name: 'campaigns.test',
    title: 'Send a test of a campaign',
    method: 'POST',
    path: `${base_path}/campaigns/{id}/test`,
    scope: 'campaigns:write',
    summary: 'Sends an email of a campaign to a team member.',
    doc: 'It is sent from an inbox of the campaign as soon as that is free, and looks as it would to a prospect. It counts toward the limits of the inbox, but is also sent when they are reached. No event is emitted, and its unsubscribe link bars nobody.',
    params: idParams,
    body: Body,
    reply: messages.schema,
    status: 202,
    errors: ['missing_parameter', 'resource_not_found', 'sample_prospect', 'invalid_state_transition'],
    run: ({ tx, params, body, services }) => sendTest(tx, params.id, body, services),
  }),
];

async function sendTest(tx: Tx, campaign_id: string, body: Body, { vault }: Services): Promise<Message> {
  await holdSuppressions(tx);
  const campaign = (await campaigns.get(tx, campaign_id)) as Campaign;
  const recipient = await recipientOf(tx, body);
  const prospect = await prospectOf(tx, campaign, body.prospect_id);
  const sender = await senderOf(tx, campaign, { inbox_id: null });
  const values = templateValues(prospect, await sendingOf(tx, campaign.brand_id), sender);
  const asked = { step_index: body.step_index, variant: body.variant };
  const rendered = await renderStep(campaign, { ...asked, sequence_id: null }, values);
  return sendMessage(tx, vault, {
    ...{ purpose: 'test', campaign_id, brand_id: campaign.brand_id, inbox_id: sender.id, ...asked, recipient },
    ...{ subject: rendered.subject, body_text: rendered.text, body_html: rendered.html },
  });
}

/** "To an address of the team." @throws Problem missing_parameter, invalid_parameter, resource_not_found */
async function recipientOf(tx: Tx, { member_id, email: address }: Body): Promise<string> {
  if (member_id !== undefined && address !== undefined) {
    throw new Problem('invalid_parameter', "'email' is not allowed with 'member_id'. Send one of them.", {
      param: 'email',
    });
  }
  if (member_id === undefined && address === undefined) {
    throw new Problem('missing_parameter', "'member_id' or 'email' is required.", { param: 'member_id' });
  }
  const asked = member_id === undefined ? sql`lower(t.email) = lower(${address})` : sql`t.id = ${member_id}`;
  const member = await teamMembers.find(tx, sql`${tenant(tx)} and t.removed_at is null and ${asked}`);
  if (member) return member.email;
  if (member_id !== undefined) throw notFound('team_member', member_id, 'member_id');
  throw new Problem('invalid_parameter', "'email' must be the address of a team member.", { param: 'email' });
}

const made_up: ProspectValues = {
  ...{ name: 'The Baking Blog', url: 'https://baking.example.com/', key: 'baking.example.com', channel: 'website' },
  ...{ country_code: 'US', language_code: 'en', custom: { first_name: 'Ada' } },
};

/** @throws Problem resource_not_found */
async function prospectOf(tx: Tx, campaign: Campaign, prospect_id: string | undefined): Promise<ProspectValues> {
  if (prospect_id === undefined) return (await firstProspect(tx, campaign)) ?? made_up;
  refuseSample(prospect_id, 'prospect_id');
  const found = await tx.maybe<ProspectValues>(sql`
    select ${prospect_values} from recruitment.prospect p
    where p.organization_id = ${tx.organization_id} and p.brand_id = ${campaign.brand_id} and p.id = ${prospect_id}`);
  if (!found) throw notFound('prospect', prospect_id, 'prospect_id');
  return found;
}

const firstProspect = (tx: Tx, { id: campaign_id }: Campaign): Promise<ProspectValues | undefined> =>
  tx.maybe<ProspectValues>(sql`
    select ${prospect_values}
    from recruitment.sequence s
    join recruitment.prospect p on p.organization_id = s.organization_id and p.id = s.prospect_id
    where s.organization_id = ${tx.organization_id} and s.campaign_id = ${campaign_id}
    order by s.prospect_id
    limit 1`);
