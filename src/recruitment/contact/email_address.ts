import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { nestedListOperation } from '../../core/resource/nested_list.ts';
import type { Operation } from '../../core/resource/operation.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { base_path } from '../events/base_path.ts';
import { prospects } from '../prospects/prospect.ts';

export const verifications = ['valid', 'accept_all', 'webmail', 'disposable', 'unknown', 'invalid'] as const;
export type Verification = (typeof verifications)[number];
export const address_sources = ['page', 'channel_api', 'stored', 'manual', 'provider'] as const;
export type AddressSource = (typeof address_sources)[number];

/** The resource of email addresses. `email` is still sealed in its records: `opened` reads it. */
export const emailAddresses = resource({
  object: 'email_address',
  plural: 'emails',
  scoped_as: 'prospects',
  base_path,
  table: 'recruitment.email_address',
  unique: { email_address_unique: 'email' },
  hard_delete: 'prospect_id',
  doc: 'An email address of a prospect.',
  fields: {
    id: id('fea'),
    object: objectName('email_address'),
    prospect_id: id('fdi').describe('The prospect.'),
    email: text.describe('The address. It is stored encrypted.'),
    rank: z.int().describe('The address that outreach uses first has the lowest rank.'),
    source: z
      .enum(address_sources)
      .describe(
        'Where it was found. `page`: on a page (`source_url`). `channel_api`: in the data of the channel. `stored`: it was known of the same prospect in another brand. `manual`: you added it. `provider`: a provider of addresses gave it.',
      ),
    source_url: text.nullable().describe('The page where it was found. Null if it was not found on a page.'),
    verification: z
      .enum(verifications)
      .describe(
        '`valid`: it accepts mail. `accept_all`: its domain accepts any address. `webmail`: it is at a free mail provider. `disposable`: it is at a provider of throw-away addresses. `unknown`: its domain accepts mail. `invalid`: it cannot receive mail.',
      ),
    suppressed: z
      .boolean()
      .describe(
        'Whether an entry bars this address or its domain. False does not mean that the prospect can be contacted: see `do_not_contact` of the prospect.',
      ),
    found_at: timestamp.describe('When it was found.'),
    used_at: timestamp.nullable().describe('When outreach first used it. Null if it has not been used.'),
    bounced_at: timestamp.nullable().describe('When mail to it bounced. Null if none has.'),
    created_at: timestamp,
  },
  computed: {
    email: sql`t.address`,
    suppressed: sql`exists (
      select from recruitment.suppression s
      where s.organization_id = t.organization_id and s.hmac in (t.address_hmac, t.domain_hmac) and s.lifted_at is null)`,
  },
});

export type EmailAddress = z.infer<typeof emailAddresses.record>;

/** The record with its address in the clear. */
export const opened = (vault: Vault, record: EmailAddress): EmailAddress => ({
  ...record,
  email: vault.decrypt(record.email as unknown as Buffer, record.id),
});

/** All addresses of a prospect, the best first. */
export async function addressesOf(tx: Tx, vault: Vault, prospect_id: string): Promise<EmailAddress[]> {
  const records = await tx.all<EmailAddress>(sql`
    select ${emailAddresses.columns} from ${emailAddresses.from}
    where ${tenant(tx)} and t.prospect_id = ${prospect_id} order by t.rank, t.id`);
  return records.map((record) => opened(vault, record));
}

export const emailListOperations: Operation[] = [
  nestedListOperation(
    {
      name: 'emails.list',
      title: 'List the email addresses of a prospect',
      path: `${base_path}/prospects/{id}/emails`,
      scope: 'prospects:read',
      summary: 'Lists the email addresses of a prospect, the best first.',
      errors: ['sample_prospect'],
    },
    {
      of: { resource: emailAddresses, order: { by: 'rank', oldest_first: true }, by: ['source', 'verification'] },
      parent: ({ tx }, id) => prospects.get(tx, id),
      where: (prospect_id) => sql`t.prospect_id = ${prospect_id}`,
      cursor: (prospect_id) => sql`t.prospect_id = ${prospect_id}`,
      shown: (row, { vault }) => opened(vault, row as unknown as EmailAddress),
    },
  ),
];
