import { z } from 'zod';
import { sampleId } from '../../core/values/fields.ts';
import { eventType } from '../../webhooks/events/catalogue.ts';
import {
  assignee_member_id,
  author_member_id,
  brand_id,
  by_member_id,
  by_user_id,
  channel,
  count,
  hidden_reasons,
  key,
  lift_reasons,
  list_id,
  note_id,
  previous_member_id,
  prospect_id,
  stage_names,
} from './fields.ts';

const stage = z.enum(stage_names);

/** Prospects as people find, keep and move them. */
export const prospectEvents = {
  'affiliate.added': eventType(
    'A prospect was added by hand, by the API or by an import.',
    {
      prospect_id,
      channel,
      source: z
        .enum(['manual', 'api', 'csv_import'])
        .describe('Who added it: a person, a key that belongs to no user, or an import.'),
    },
    { prospect_id: sampleId('fdi'), channel: 'website', source: 'manual' },
  ),
  'affiliate.saved': eventType(
    'A prospect was saved, to a list or to the saved affiliates.',
    { prospect_id, channel, key, list_id },
    { prospect_id: sampleId('fdi'), channel: 'website', key: 'baking.example.com', list_id: sampleId('fls') },
    { personal: ['key'] },
  ),
  'affiliate.hidden': eventType(
    'A prospect was hidden.',
    {
      prospect_id,
      reason: z.enum(hidden_reasons).describe('The reason that was chosen.'),
    },
    { prospect_id: sampleId('fdi'), reason: 'not_relevant' },
  ),
  'affiliate.stage_changed': eventType(
    'A prospect was moved to another stage of the pipeline.',
    {
      prospect_id,
      from: stage.describe('The stage before.'),
      to: stage.describe('The stage now.'),
      by_user_id: by_user_id.describe('Who moved it. Null: outreach, or the API.'),
      reason: z
        .enum([
          'manual',
          'message_sent',
          'reply_received',
          'unsubscribed',
          'deal_created',
          'deal_agreed',
          'activated',
          'signed_up',
        ])
        .describe('What moved it.'),
    },
    {
      ...{ prospect_id: sampleId('fdi'), from: 'found', to: 'contacted' },
      ...{ by_user_id: null, reason: 'message_sent' },
    },
  ),
  'email.revealed': eventType(
    'An email address of a prospect was found. Read the address from the prospect via the API.',
    {
      prospect_id,
      source: z
        .enum(['page', 'channel_api', 'stored', 'manual', 'provider'])
        .describe('Where the best address was found.'),
      verification: z
        .enum(['valid', 'accept_all', 'webmail', 'disposable', 'unknown', 'invalid'])
        .describe('What is known of the best address.'),
      addresses: count('How many usable addresses the prospect has now.'),
    },
    { prospect_id: sampleId('fdi'), source: 'page', verification: 'unknown', addresses: 1 },
  ),
};

/** Events about prospects who must not be written to. */
export const doNotContactEvents = {
  'do_not_contact.added': eventType(
    'A prospect was marked Do not contact, which bars them from outreach.',
    {
      prospect_id,
      reason: z.enum(['manual', 'legal', 'angry_reply', 'complaint']).describe('Why.'),
      by_user_id,
    },
    { prospect_id: sampleId('fdi'), reason: 'manual', by_user_id: sampleId('usr') },
  ),
  'do_not_contact.lifted': eventType(
    'The mark Do not contact was lifted.',
    { prospect_id, reason: z.enum(lift_reasons).describe('Why.'), by_user_id },
    { prospect_id: sampleId('fdi'), reason: 'mistake', by_user_id: sampleId('usr') },
  ),
};

/** Events about a team's work on its prospects. */
export const teamEvents = {
  'affiliate.assigned': eventType(
    'The assignee of a prospect changed.',
    { prospect_id, brand_id, assignee_member_id, previous_member_id, by_member_id },
    {
      ...{ prospect_id: sampleId('fdi'), brand_id: sampleId('fbr'), assignee_member_id: sampleId('tm') },
      ...{ previous_member_id: null, by_member_id: sampleId('tm') },
    },
  ),
  'note.added': eventType(
    "A note was added to a prospect. Read its text through the prospect's notes.",
    { prospect_id, brand_id, note_id, author_member_id },
    {
      ...{ prospect_id: sampleId('fdi'), brand_id: sampleId('fbr') },
      ...{ note_id: sampleId('fcn'), author_member_id: sampleId('tm') },
    },
  ),
  'affiliate.invited': eventType(
    'A prospect was invited to the affiliate program by email, or was marked as invited.',
    { prospect_id, brand_id, by_member_id },
    { prospect_id: sampleId('fdi'), brand_id: sampleId('fbr'), by_member_id: sampleId('tm') },
  ),
  'affiliate.signed_up': eventType(
    'An invited prospect signed up.',
    {
      prospect_id,
      brand_id,
      source: z
        .enum(['manual', 'rail'])
        .describe('`manual`: the team marked it. `rail`: their joining of the affiliate program was observed.'),
    },
    { prospect_id: sampleId('fdi'), brand_id: sampleId('fbr'), source: 'rail' },
  ),
};
