import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { update } from '../../core/postgres/write.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { id, objectName, oneLine, timestamp } from '../../core/values/fields.ts';
import { Problem } from '../../core/values/problem.ts';
import { partners } from './partner.ts';
import { completeOnboarding } from './terms.ts';

const statuses = ['none', 'submitted', 'verified', 'rejected'] as const;

const status = z
  .enum(statuses)
  .describe(
    '`none`: no form was submitted. `submitted`: waiting for verification. `verified`: accepted. `rejected`: not accepted.',
  );

const TaxForm = z
  .object({
    object: objectName('tax_form'),
    partner_id: id('part'),
    status,
    updated_at: timestamp.nullable().describe('When the status was last set. Null if it was never set.'),
  })
  .meta({
    id: 'TaxForm',
    description: "The status of a partner's tax form. The content of the form is never returned.",
  });

export const taxFormOperations: Operation[] = [
  operation({
    name: 'partners.get_tax_form',
    method: 'GET',
    path: '/v1/partners/{id}/tax_form',
    scope: 'partners:read',
    summary: "Retrieves the status of a partner's tax form.",
    params: idParams,
    reply: TaxForm,
    async run({ tx, params }) {
      await partners.get(tx, params.id);
      return shown(tx, params.id);
    },
  }),
  operation({
    name: 'partners.put_tax_form',
    method: 'PUT',
    path: '/v1/partners/{id}/tax_form',
    scope: 'partners:write',
    summary: "Sets the status of a partner's tax form.",
    params: idParams,
    body: z.strictObject({ status }),
    reply: TaxForm,
    async run({ tx, params, body }) {
      await partners.get(tx, params.id, { lock: true });
      await update(tx, 'program.partner', params.id, { tax_form_status: body.status, tax_form_updated_at: tx.now });
      return shown(tx, params.id);
    },
  }),
];

/** The form as a partner hands it in: a file. */
export const TaxFormFile = z.strictObject({
  name: oneLine(200),
  media_type: z.enum(['application/pdf', 'image/png', 'image/jpeg']),
  /** At most 4 MiB, in base64. */
  content: z.base64().min(4).max(5_592_408),
});

export type TaxFormFile = z.infer<typeof TaxFormFile>;

/**
 * Keeps the form that a partner hands in, encrypted, in place of an earlier one, and sets its status `submitted`. "The form content is never
 * returned over an API key": no operation reads it.
 */
export async function submitTaxForm(
  tx: Tx,
  { vault }: Pick<Services, 'vault'>,
  partner_id: string,
  file: TaxFormFile,
): Promise<z.infer<typeof TaxForm>> {
  await partners.get(tx, partner_id, { lock: true });
  const content = vault.encrypt(JSON.stringify(file), partner_id);
  await tx.all(sql`
    insert into program.tax_form (organization_id, partner_id, content, submitted_at)
    values (${tx.organization_id}, ${partner_id}, ${content}, ${tx.now}::timestamptz)
    on conflict (organization_id, partner_id) do update set content = excluded.content, submitted_at = excluded.submitted_at`);
  await update(tx, 'program.partner', partner_id, { tax_form_status: 'submitted', tax_form_updated_at: tx.now });
  await completeOnboarding(tx, partner_id);
  return shown(tx, partner_id);
}

/**
 * The form of a partner, for a person who is signed in and may see it: never for a key.
 * @throws Problem resource_not_found when the partner has handed in none
 */
export async function readTaxForm(
  tx: Tx,
  { vault }: Pick<Services, 'vault'>,
  partner_id: string,
): Promise<TaxFormFile & { submitted_at: string }> {
  const stored = await tx.maybe<{ content: Buffer; submitted_at: string }>(sql`
    select t.content, t.submitted_at from program.tax_form t where ${tenant(tx)} and t.partner_id = ${partner_id}`);
  if (!stored) throw new Problem('resource_not_found', 'The partner has handed in no tax form.', { param: 'id' });
  const file = TaxFormFile.parse(JSON.parse(vault.decrypt(stored.content, partner_id)));
  return { ...file, submitted_at: stored.submitted_at };
}

const shown = (tx: Tx, partner_id: string): Promise<z.infer<typeof TaxForm>> =>
  tx.one(sql`
    select 'tax_form' as object, t.id as partner_id, t.tax_form_status as status, t.tax_form_updated_at as updated_at
    from program.partner t
    where ${tenant(tx)} and t.id = ${partner_id}`);
