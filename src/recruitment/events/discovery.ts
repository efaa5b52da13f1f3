import { z } from 'zod';
import { sampleId } from '../../core/values/fields.ts';
import { eventType } from '../../webhooks/events/catalogue.ts';
import { brand_id, count, credit_refunded, scan_id, search_id } from './fields.ts';

const state = z
  .enum(['done', 'stopped_at_ceiling'])
  .describe('`stopped_at_ceiling`: it reached its own ceiling, or the spending ceiling of the plan.');
const trigger = z.enum(['first', 'weekly', 'search', 'manual']).describe('What started the scan.');

/** Searches for prospects, and scans of what they found. */
export const discoveryEvents = {
  'search.completed': eventType(
    'A search finished.',
    {
      search_id,
      brand_id,
      search_type: z
        .enum(['keyword', 'competitor', 'lookalike', 'channel', 'url_list'])
        .describe('The kind of search.'),
      state,
      found: count('How many new prospects it found.'),
    },
    {
      ...{ search_id: sampleId('fsc'), brand_id: sampleId('fbr'), search_type: 'keyword' },
      ...{ state: 'done', found: 42 },
    },
  ),
  'search.failed': eventType(
    'A search could not start, and its credit was refunded.',
    { search_id, credit_refunded },
    { search_id: sampleId('fsc'), credit_refunded: true },
  ),
  'scan.completed': eventType(
    'A scan finished.',
    { scan_id, brand_id, trigger, state, found: count('How many prospects it found, or found something new about.') },
    { scan_id: sampleId('fsc'), brand_id: sampleId('fbr'), trigger: 'weekly', state: 'done', found: 7 },
  ),
  'scan.failed': eventType(
    'A scan failed.',
    {
      scan_id,
      brand_id,
      trigger,
      error: z
        .enum([
          'No search provider answered.',
          'The website could not be reached.',
          'The website forbids visits.',
          'The website cannot be read.',
          'Interrupted too often.',
        ])
        .describe('What went wrong, as a sentence.'),
      credit_refunded,
    },
    {
      ...{ scan_id: sampleId('fsc'), brand_id: sampleId('fbr'), trigger: 'manual' },
      ...{ error: 'No search provider answered.', credit_refunded: true },
    },
  ),
};
