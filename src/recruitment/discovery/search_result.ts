import sql from 'sql-template-tag';
import { z } from 'zod';
import { nestedListOperation } from '../../core/resource/nested_list.ts';
import type { Operation } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { enumOf, id, meaningsOf, objectName, text, timestamp } from '../../core/values/fields.ts';
import { base_path } from '../events/base_path.ts';
import { channels, provider_names } from '../search_providers/provider.ts';
import { searches } from './search.ts';
import { skip_reasons } from './skip.ts';

export const searchResults = resource({
  object: 'search_result',
  plural: 'search_results',
  base_path,
  scoped_as: 'searches',
  table: 'recruitment.run_result',
  unique: { run_result_once: null },
  doc: 'A page or a channel that a search found.',
  fields: {
    id: id('fsr'),
    object: objectName('search_result'),
    search_id: id('fsc').describe('The search.'),
    provider: z.enum(provider_names).describe('The provider that found it.'),
    url: text.describe('Its URL. With `not_a_prospect`: a name of the result.'),
    title: text.describe('Its title, as the provider has it.'),
    description: text.describe('What the provider says of it.'),
    channel: z.enum(channels).nullable().describe('The channel that it is in. Null: its URL names no prospect.'),
    key: text.nullable().describe('The prospect in its channel. Null: its URL names no prospect.'),
    prospect_id: id('fdi').nullable().describe('The prospect. Null if it was skipped.'),
    outcome: z
      .enum(['new', 'known', 'skipped'])
      .describe('`new`: it became a prospect. `known`: it was one. `skipped`: it was left out.'),
    skipped_because: enumOf(skip_reasons)
      .nullable()
      .describe(`Why it was skipped. ${meaningsOf(skip_reasons)} Null if it was not skipped.`),
    created_at: timestamp,
  },
  computed: {
    search_id: sql`t.run_id`,
    // Results that were stored before erased persons were told like this.
    url: sql`case when t.skipped_because in ('erased', 'not_a_prospect') then 'urn:rail:skipped:' || t.id else t.url end`,
    title: sql`case when t.skipped_because = 'not_a_prospect' then '' else t.title end`,
    description: sql`case when t.skipped_because = 'not_a_prospect' then '' else t.description end`,
    skipped_because: sql`case t.skipped_because when 'erased' then 'not_a_prospect' else t.skipped_because end`,
  },
});

export const searchResultOperations: Operation[] = [
  nestedListOperation(
    {
      name: 'searches.results',
      title: 'List the results of a search',
      path: `${base_path}/searches/{id}/results`,
      scope: 'searches:read',
      summary: 'Lists what a search found, in the order in which it was found, skipped results included.',
    },
    {
      of: {
        resource: searchResults,
        by: ['outcome', 'provider', 'channel'],
        order: { by: 'created_at', oldest_first: true },
      },
      parent: ({ tx }, id) => searches.get(tx, id),
      where: (search_id) => sql`t.run_id = ${search_id}`,
    },
  ),
];
