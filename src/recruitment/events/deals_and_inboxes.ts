import { z } from 'zod';
import { sampleId } from '../../core/values/fields.ts';
import { eventType } from '../../webhooks/events/catalogue.ts';
import {
  agreed_by,
  count,
  deal_id,
  inbox_id,
  inbox_reason,
  occurred_at,
  partner_id,
  program_id,
  prospect_id,
  rule_id,
} from './fields.ts';

export const dealEvents = {
  'deal.agreed': eventType(
    'A deal was agreed. Its terms are frozen at `version`: read them by fetching the deal.',
    { deal_id, prospect_id, version: z.int().min(1).describe('The version that was agreed.'), agreed_by },
    { deal_id: sampleId('fdl'), prospect_id: sampleId('fdi'), version: 2, agreed_by: sampleId('usr') },
  ),
  'affiliate.activated': eventType(
    'An agreed deal became a partner of the affiliate program, with a commission rule.',
    {
      deal_id,
      prospect_id,
      program_id,
      partner_id,
      rule_id,
      linked_existing: z.boolean().describe('Whether the partner existed before.'),
      terms_summary: z
        .string()
        .regex(/^(Percent|Fixed) commission rule, deal version [1-9][0-9]{0,8}$/)
        .describe('The kind of the rule and the version of the deal, without amounts.'),
    },
    {
      ...{ deal_id: sampleId('fdl'), prospect_id: sampleId('fdi'), program_id: sampleId('prg') },
      ...{ partner_id: sampleId('part'), rule_id: sampleId('flw'), linked_existing: false },
      terms_summary: 'Percent commission rule, deal version 2',
    },
  ),
};

export const inboxEvents = {
  'inbox.connected': eventType(
    'An inbox was connected.',
    { inbox_id, occurred_at },
    { inbox_id: sampleId('fin'), occurred_at: '2026-11-21T09:30:00.000Z' },
  ),
  'inbox.disconnected': eventType(
    'An inbox was disconnected. Its sequences, and campaigns without another connected inbox, are paused until it is reconnected.',
    {
      inbox_id,
      reason: inbox_reason,
      paused_sequences: count('Sequences that are paused by it.'),
      paused_campaigns: count('Campaigns that are paused by it.'),
      occurred_at,
    },
    {
      ...{ inbox_id: sampleId('fin'), reason: 'auth_failed', paused_sequences: 12, paused_campaigns: 1 },
      occurred_at: '2026-11-21T09:30:00.000Z',
    },
  ),
};
