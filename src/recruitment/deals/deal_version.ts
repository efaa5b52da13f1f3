import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { nestedListOperation } from '../../core/resource/nested_list.ts';
import type { Operation } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { id, objectName, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import type { Actor } from '../brands/acting.ts';
import { base_path } from '../events/base_path.ts';
import { deals } from './deal.ts';
import { Terms, termsColumn } from './terms.ts';

export const dealVersions = resource({
  object: 'deal_version',
  plural: 'deal_versions',
  scoped_as: 'deals',
  base_path,
  table: 'recruitment.deal_version',
  unique: { deal_version_unique: null, deal_version_digest_unique: null },
  doc: 'The terms of a deal as they were after a change. A version never changes.',
  fields: {
    id: id('fdv'),
    object: objectName('deal_version'),
    deal_id: id('fdl').describe('The deal.'),
    version: z.int().describe('1 for the first version.'),
    terms: Terms.describe('The terms.'),
    created_by_user_id: id('usr')
      .nullable()
      .describe('The user who sent the terms. Null: the API key belongs to no user.'),
    created_at: timestamp,
  },
  computed: {
    terms: sql`(
      select ${termsColumn}
      from recruitment.deal_version v
      where v.organization_id = t.organization_id and v.id = t.id)`,
  },
});

/** Adds a version to a deal that the caller has locked, or is about to insert. */
export const addVersion = (tx: Tx, deal_id: string, version: number, terms: Terms, by: Actor): Promise<unknown> =>
  dealVersions.insert(tx, { ...terms, id: newId('fdv'), deal_id, version, created_by_user_id: by.user_id });

export const dealVersionOperations: Operation[] = [
  nestedListOperation(
    {
      name: 'deals.versions',
      title: 'List the versions of a deal',
      path: `${base_path}/deals/{id}/versions`,
      scope: 'deals:read',
      summary: 'Lists the versions of the terms of a deal, newest first.',
    },
    {
      of: { resource: dealVersions },
      parent: ({ tx }, deal_id) => deals.get(tx, deal_id),
      where: (deal_id) => sql`t.deal_id = ${deal_id}`,
      cursor: (deal_id) => sql`t.deal_id = ${deal_id}`,
    },
  ),
];
