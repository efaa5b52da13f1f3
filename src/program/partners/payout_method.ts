import { isValidBIC, isValidIBAN } from 'ibantools';
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { email, id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { Problem } from '../../core/values/problem.ts';
import { validationProblem } from '../../core/values/validation.ts';
import { type PayoutMethodName, payout_methods, programs } from '../programs/program.ts';
import { partners } from './partner.ts';

const method = z.enum(payout_methods).describe("By what the partner is paid: one of the program's `payout_methods`.");

const PayoutMethod = z
  .object({
    object: objectName('payout_method'),
    partner_id: id('part'),
    method,
    hint: text.describe('The last four characters of what identifies the account.'),
    updated_at: timestamp,
  })
  .meta({ id: 'PayoutMethod', description: 'How a partner is paid. The details are encrypted and never shown again.' });

const spaceless = text.max(64).transform((value) => value.replaceAll(/\s/g, '').toUpperCase());
const holder = text.min(1).max(200);

const Iban = z.strictObject({
  account_holder: holder,
  iban: spaceless.refine(isValidIBAN, 'must be an IBAN whose checksum is right'),
  bic: spaceless.refine(isValidBIC, 'must be a BIC of 8 or 11 characters'),
});
const Account = z.strictObject({
  account_holder: holder,
  account_number: text.regex(/^[0-9]{4,17}$/, 'must be 4 to 17 digits'),
  routing_number: text
    .regex(/^[0-9]{9}$/, 'must be 9 digits')
    .refine(isRoutingNumber, 'must be a routing number whose checksum is right'),
});
const Crypto = z.strictObject({ address: text.min(20).max(128), network: text.min(2).max(32) });
const ProviderAccount = z.strictObject({ account_id: text.min(3).max(128) });

/** What a method needs to know of a partner. */
function detailsOf(method: PayoutMethodName, given: Record<string, string>): z.ZodType<Record<string, string>> {
  if (method === 'paypal') return z.strictObject({ email });
  if (method === 'crypto') return Crypto;
  if (method === 'wise' || method === 'stripe') return ProviderAccount;
  return 'iban' in given ? Iban : Account;
}

/** The fields whose end is the hint. */
const identifying = ['iban', 'account_number', 'address', 'email', 'account_id'];

export const payoutMethodOperations: Operation[] = [
  operation({
    name: 'partners.get_payout_method',
    method: 'GET',
    path: '/v1/partners/{id}/payout_method',
    scope: 'partners:read',
    summary: 'Reads how a partner is paid.',
    params: idParams,
    reply: PayoutMethod,
    async run({ tx, params }) {
      await partners.get(tx, params.id);
      return shown(tx, params.id);
    },
  }),
  operation({
    name: 'partners.put_payout_method',
    method: 'PUT',
    path: '/v1/partners/{id}/payout_method',
    scope: 'partners:write',
    summary: 'Sets how a partner is paid.',
    doc: 'The details depend on the method: `{email}` for paypal; `{account_holder, iban, bic}` or `{account_holder, account_number, routing_number}` for bank_transfer and wire; `{address, network}` for crypto; `{account_id}` for stripe and wise.',
    params: idParams,
    body: z.strictObject({
      method,
      details: z.record(text, text).meta({
        description: 'Where to: the fields depend on the method, see above. Checked, encrypted, and never shown again.',
        examples: [{ account_holder: 'Ada Lovelace', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' }],
      }),
    }),
    reply: PayoutMethod,
    async run({ tx, params, body, services }) {
      const { id: partner_id, program_id } = await partners.get(tx, params.id, { lock: true });
      const of = await programs.get(tx, program_id);
      if (!of.payout_methods.includes(body.method)) {
        throw new Problem('invalid_parameter', `The program pays by ${of.payout_methods.join(', ')}.`, {
          param: 'method',
        });
      }
      const checked = checkDetails(body.method, body.details);
      const hint = (identifying.map((field) => checked[field]).find((value) => value !== undefined) as string).slice(
        -4,
      );
      const sealed = services.vault.encrypt(JSON.stringify(checked), partner_id);
      await tx.all(sql`
        insert into program.payout_method (organization_id, partner_id, method, details, hint)
        values (${tx.organization_id}, ${partner_id}, ${body.method}, ${sealed}, ${hint})
        on conflict (organization_id, partner_id) do update set
          method = excluded.method, details = excluded.details, hint = excluded.hint, updated_at = ${tx.now}::timestamptz`);
      return shown(tx, partner_id);
    },
  }),
];

/** @throws Problem resource_not_found where none is set */
async function shown(tx: Tx, partner_id: string): Promise<z.infer<typeof PayoutMethod>> {
  const found = await tx.maybe<z.infer<typeof PayoutMethod>>(sql`
    select 'payout_method' as object, t.partner_id, t.method, t.hint, t.updated_at
    from program.payout_method t
    where ${tenant(tx)} and t.partner_id = ${partner_id}`);
  if (!found) throw new Problem('resource_not_found', 'The partner has not set how to be paid.', { param: 'id' });
  return found;
}

/** @throws Problem that names the field of the details which is wrong */
function checkDetails(method: PayoutMethodName, given: Record<string, string>): Record<string, string> {
  const { data, error } = detailsOf(method, given).safeParse(given);
  if (data) return data;
  const issues = error.issues.map((issue) => ({ ...issue, path: ['details', ...issue.path] }));
  throw validationProblem({ issues }, 'body', { details: given });
}

/** ABA: weights 3, 7, 1 over nine digits come to a multiple of 10. */
function isRoutingNumber(digits: string): boolean {
  return [...digits].reduce((sum, digit, at) => sum + Number(digit) * ([3, 7, 1][at % 3] as number), 0) % 10 === 0;
}
