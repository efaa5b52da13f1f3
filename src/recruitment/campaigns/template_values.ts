/** The values of a prospect, a brand and an inbox that templates can use. */
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { TemplateValues } from '../composing/template_fields.ts';
import type { Prospect } from '../prospects/prospect.ts';

/** The columns of a prospect `p` that templates use. */
export const prospect_values: Sql = sql`p.name, p.url, p.key, p.channel, p.country_code, p.language_code, p.custom`;
export type ProspectValues = Pick<
  Prospect,
  'name' | 'url' | 'key' | 'channel' | 'country_code' | 'language_code' | 'custom'
>;

/** A brand, with the name of its program. */
export interface Sending {
  name: string;
  website_url: string;
  sender_company: string | null;
  postal_address: string | null;
  privacy_url: string | null;
  program_name: string | null;
}

export const sendingOf = (tx: Tx, brand_id: string): Promise<Sending> =>
  tx.one<Sending>(sql`
    select b.name, b.website_url, b.sender_company, b.postal_address, b.privacy_url, (
      select g.name from program.program g where g.organization_id = b.organization_id and g.id = b.program_id) as program_name
    from recruitment.brand b
    where b.organization_id = ${tx.organization_id} and b.id = ${brand_id}`);

export const templateValues = (
  { name: prospect_name, url, key, channel, country_code, language_code, custom }: ProspectValues,
  {
    name,
    website_url,
    sender_company,
    program_name,
  }: Pick<Sending, 'name' | 'website_url' | 'sender_company' | 'program_name'>,
  sender: { from_name: string; email: string },
): TemplateValues => ({
  prospect: {
    ...{ name: prospect_name, url, key, channel, country_code, language_code },
    custom: custom as Record<string, unknown>,
  },
  brand: { name, website_url, sender_company },
  sender: { name: sender.from_name, email: sender.email },
  program: program_name === null ? null : { name: program_name },
});
