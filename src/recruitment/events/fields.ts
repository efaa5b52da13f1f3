/**
 * Fields that several types of event have, and that mean the same in each. No field takes free text, so that no event can hold an address, a
 * mail's text, a typed search text or the terms of a deal: an event has ids, enumerations, integers, booleans, times, and a few sentences of
 * ours.
 */
import { z } from 'zod';
import { sampleId, timestamp } from '../../core/values/fields.ts';

/** An id as the schema knows it by its form; a sample's ends with its number. */
const id = (prefix: string) =>
  z
    .string()
    .regex(new RegExp(`^(sample_)?${prefix}_([0-9a-z]{26}|[0-9]{2})$`))
    .meta({ description: `\`${prefix}_…\``, examples: [sampleId(prefix)] });

export const prospect_id = id('fdi').describe('The prospect.');
export const brand_id = id('fbr').describe('The brand.');
export const campaign_id = id('fca').describe('The campaign.');
export const sequence_id = id('fsq').describe('The sequence of emails to the prospect.');
export const inbox_id = id('fin').describe('The inbox.');
export const message_id = id('fms').describe('The email: read its text via the API.');
export const search_id = id('fsc').describe('The search.');
export const scan_id = id('fsc').describe('The scan.');
export const deal_id = id('fdl').describe('The deal: read its terms via the API.');
export const note_id = id('fcn').describe('The note: read its text via the API.');
export const list_id = id('fls').nullable().describe('The list. Null: saved without one.');
export const program_id = id('prg').describe('The program of the affiliate program service.');
export const partner_id = id('part').describe('The partner of the affiliate program service.');
export const rule_id = id('flw').describe('The commission rule of the affiliate program service.');

const member_id = id('tm');
export const assignee_member_id = member_id.nullable().describe('The assignee of the prospect now. Null: nobody.');
export const previous_member_id = member_id.nullable().describe('The assignee of the prospect before. Null: nobody.');
export const by_member_id = member_id.nullable().describe('The team member who did it. Null: the API or the system.');
export const author_member_id = member_id.nullable().describe('Who wrote the note. Null: the API.');

export const by_user_id = id('usr').nullable().describe('Who did it. Null: the API or the system.');
export const agreed_by = id('usr').nullable().describe('Who agreed for the team. Null: the API, or the prospect.');

export const occurred_at = timestamp.describe('When it happened. ISO 8601, UTC.');

/** Counts of what there is. */
export const count = (meaning: string) => z.int().min(0).describe(meaning);
export const credit_refunded = z.boolean().describe('Whether a credit was refunded. False if none was charged.');

export const channels = ['website', 'youtube', 'podcast', 'newsletter', 'instagram', 'tiktok', 'x', 'other'] as const;
export type Channel = (typeof channels)[number];
export const channel = z.enum(channels).describe('Where the prospect publishes.');
export const stage_names = [
  'found',
  'contacted',
  'replied',
  'interested',
  'negotiating',
  'agreed',
  'active',
  'lost',
] as const;
export type Stage = (typeof stage_names)[number];
export const hidden_reasons = [
  'not_relevant',
  'competitor',
  'low_quality',
  'already_partner',
  'wrong_language',
  'other',
] as const;
export type HiddenReason = (typeof hidden_reasons)[number];
export const lift_reasons = ['mistake', 'consent', 'other'] as const;

/** The key of a prospect in its channel: a domain, a channel's id, a handle. It never holds an `@`, so that it is no address. */
export const key = z
  .string()
  .regex(/^[A-Za-z0-9._-]{1,255}$/)
  .meta({
    description: 'The prospect in its channel: a registrable domain, the id of a channel, a handle.',
    examples: ['baking.example.com'],
  });

/** The fields of every event of outreach. */
export const outreach = { brand_id, prospect_id, campaign_id, sequence_id, inbox_id, occurred_at };

export const inbox_reason = z
  .enum(['auth_failed', 'connection_failed', 'removed', 'disabled'])
  .describe('Why the inbox was disconnected.');
