import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { update } from '../../core/postgres/write.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { id, objectName, timestamp } from '../../core/values/fields.ts';
import { partners } from './partner.ts';

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

const shown = (tx: Tx, partner_id: string): Promise<z.infer<typeof TaxForm>> =>
  tx.one(sql`
    select 'tax_form' as object, t.id as partner_id, t.tax_form_status as status, t.tax_form_updated_at as updated_at
    from program.partner t
    where ${tenant(tx)} and t.id = ${partner_id}`);
