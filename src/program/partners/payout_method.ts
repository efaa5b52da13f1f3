import { isDeepStrictEqual } from 'node:util';
import { isValidBIC, isValidIBAN } from 'ibantools';
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { email, id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { validationProblem } from '../../core/values/validation.ts';
import { type PayoutMethodName, payout_methods, programs } from '../programs/program.ts';
import { mayBeAddress } from './ethereum_address.ts';
import { mailPartner } from './mails/mail_partner.ts';
import { partners } from './partner.ts';
import { completeOnboarding } from './terms.ts';

const method = z.enum(payout_methods).describe("How the partner is paid: one of the program's `payout_methods`.");

const PayoutMethod = z
  .object({
    object: objectName('payout_method'),
    partner_id: id('part'),
    method,
    hint: text.describe(
      'The last four characters of the account identifier, such as the IBAN. Of an email address, those before the `@`.',
    ),
    held_until: timestamp
      .nullable()
      .describe('Nothing is paid by it before: the partner changed it in the portal. Null: payouts do not wait.'),
    updated_at: timestamp,
  })
  .meta({ id: 'PayoutMethod', description: 'How a partner is paid. The details are encrypted and never returned.' });

const spaceless = text.max(64).transform((value) => value.replaceAll(/\s/g, '').toUpperCase());
/** A bank's file needs a name: a payout to somebody without one would never be sent. */
const holder = text
  .min(1)
  .max(200)
  .refine(
    // Banks write no other scripts: such a name would be full stops alone.
    (name) => /[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}0-9]/u.test(name),
    'must have a letter or digit that banks can write: give the name in Latin letters',
  );

export const iban = spaceless.refine(isValidIBAN, 'must be an IBAN with a valid checksum');
export const bic = spaceless.refine(isValidBIC, 'must be a BIC of 8 or 11 characters');

/** Banks issue IBANs of other countries under their own BIC: a payment goes by the IBAN, so the two need not be of one country. */
const Iban = z.strictObject({ account_holder: holder, iban, bic });
const Account = z.strictObject({
  account_holder: holder,
  account_number: text.regex(/^[0-9]{4,17}$/, 'must be 4 to 17 digits'),
  routing_number: text
    .regex(/^[0-9]{9}$/, 'must be 9 digits')
    .refine(isRoutingNumber, 'must be a routing number with a valid checksum'),
});
const Crypto = z
  .strictObject({ address: text.min(20).max(128), network: text.min(2).max(32) })
  .refine(({ address, network }) => mayBeAddress(address, network), {
    path: ['address'],
    error: 'must be an address of the network, with a valid checksum where its letters are in mixed case',
  });
const ProviderAccount = z.strictObject({ account_id: text.min(3).max(128) });

/** The details of all methods: those of one are some of them. */
export const every_detail = z
  .object({ email, ...Iban.shape, ...Account.shape, ...Crypto.shape, ...ProviderAccount.shape })
  .partial();

/** The schema of a method's details. */
function detailsOf(method: PayoutMethodName, details: Record<string, string>): z.ZodType<Record<string, string>> {
  if (method === 'paypal') return z.strictObject({ email });
  if (method === 'crypto') return Crypto;
  if (method === 'wise' || method === 'stripe') return ProviderAccount;
  return 'iban' in details ? Iban : Account;
}

/** The fields that identify an account: the hint is the end of one of them. */
const identifying_fields = ['iban', 'account_number', 'address', 'email', 'account_id'];

export const payoutMethodOperations: Operation[] = [
  operation({
    name: 'partners.get_payout_method',
    method: 'GET',
    path: '/v1/partners/{id}/payout_method',
    scope: 'partners:read',
    summary: 'Retrieves the payout method of a partner.',
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
    summary: 'Sets the payout method of a partner.',
    doc: 'The details depend on the method: `{email}` for paypal; `{account_holder, iban, bic}` or `{account_holder, account_number, routing_number}` for bank_transfer and wire; `{address, network}` for crypto; `{account_id}` for stripe and wise.',
    params: idParams,
    body: z.strictObject({
      method,
      details: z.record(text, text).meta({
        description:
          'The account. The fields depend on the method, as described above. They are validated, encrypted and never returned.',
        examples: [{ account_holder: 'Ada Lovelace', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' }],
      }),
    }),
    reply: PayoutMethod,
    run: ({ tx, params, body, services, caller }) =>
      setPayoutMethod(tx, services, params.id, body, caller.partner_id === undefined ? 'merchant' : 'partner'),
  }),
];

/** The time for which nothing is paid by a method that the partner has just changed: whoever has the partner's mailbox would else be paid at once. */
export const held_hours = 72;

interface Given {
  method: PayoutMethodName;
  details: Record<string, string>;
}

/**
 * Sets the payout method of a partner.
 * @param by `partner`: one who changes it is warned by email, at the address of the account before, too, and payouts wait for 72 hours. `merchant`: the
 * method is paid by at once
 * @throws Problem resource_not_found, invalid_parameter, naming `method` or `details.<field>`
 */
export async function setPayoutMethod(
  tx: Tx,
  services: Pick<Services, 'vault'>,
  id: string,
  given: Given,
  by: 'partner' | 'merchant' = 'merchant',
): Promise<z.infer<typeof PayoutMethod>> {
  const { id: partner_id, program_id } = await partners.get(tx, id, { lock: true });
  await requireOfferedMethod(tx, program_id, given.method);
  const details = checkDetails(given.method, given.details);
  const before = await storedMethod(tx, services, partner_id);
  if (before?.method === given.method && isDeepStrictEqual(before.details, details)) return shown(tx, partner_id);
  const is_held = by === 'partner' && before !== undefined;
  const encrypted = services.vault.encrypt(JSON.stringify(details), partner_id);
  // The time of the clock: where this waited for a batch that is being created, its payouts come before.
  await tx.all(sql`
    insert into program.payout_method (organization_id, partner_id, method, details, hint)
    values (${tx.organization_id}, ${partner_id}, ${given.method}, ${encrypted}, ${hintOf(details)})
    on conflict (organization_id, partner_id) do update set
      method = excluded.method, details = excluded.details, hint = excluded.hint, updated_at = clock_timestamp(),
      held_until = ${is_held ? heldUntil(tx) : null}::timestamptz`);
  const after = await shown(tx, partner_id);
  if (is_held) warn(tx, services, after, before.details.email);
  if (by === 'partner') await completeOnboarding(tx, partner_id);
  return after;
}

const heldUntil = (tx: Tx): string => new Date(Date.parse(tx.now) + held_hours * 3_600_000).toISOString();

/** Emails the partner, and the account before where that is an email address, that the method changed. */
function warn(
  tx: Tx,
  { vault }: Pick<Services, 'vault'>,
  { partner_id, method, hint }: z.infer<typeof PayoutMethod>,
  address_before: string | undefined,
): void {
  const about = { kind: 'payout_method_changed' as const, method, hint, held_until: heldUntil(tx) };
  mailPartner(tx, partner_id, about);
  if (address_before === undefined) return;
  const id = newId('mail');
  const sealed_address = vault.encrypt(address_before, id).toString('base64');
  mailPartner(tx, partner_id, { ...about, sealed_address }, id);
}

/** A method that is set again unchanged keeps the time of its last change, which shows whether payouts were approved with it. */
async function storedMethod(
  tx: Tx,
  { vault }: Pick<Services, 'vault'>,
  partner_id: string,
): Promise<Given | undefined> {
  const stored = await tx.maybe<{ method: PayoutMethodName; details: Buffer }>(sql`
    select t.method, t.details from program.payout_method t where ${tenant(tx)} and t.partner_id = ${partner_id}`);
  return stored && { method: stored.method, details: JSON.parse(vault.decrypt(stored.details, partner_id)) };
}

async function requireOfferedMethod(tx: Tx, program_id: string, method: PayoutMethodName): Promise<void> {
  const { payout_methods: offered } = await programs.get(tx, program_id);
  if (offered.includes(method)) return;
  throw new Problem('invalid_parameter', `The program's payout methods are ${offered.join(', ')}. Use one of these.`, {
    param: 'method',
  });
}

function hintOf(details: Record<string, string>): string {
  const account = identifying_fields.map((field) => details[field]).find((value) => value !== undefined) as string;
  return account.replace(/@[^@]*$/, '').slice(-4);
}

/** @throws Problem resource_not_found when the partner has no payout method */
async function shown(tx: Tx, partner_id: string): Promise<z.infer<typeof PayoutMethod>> {
  const payout_method = await tx.maybe<z.infer<typeof PayoutMethod>>(sql`
    select 'payout_method' as object, t.partner_id, t.method, t.hint, t.held_until, t.updated_at
    from program.payout_method t
    where ${tenant(tx)} and t.partner_id = ${partner_id}`);
  if (!payout_method) throw new Problem('resource_not_found', 'The partner has no payout method.', { param: 'id' });
  return payout_method;
}

/** @throws Problem for the first invalid field of the details */
function checkDetails(method: PayoutMethodName, details: Record<string, string>): Record<string, string> {
  const { data, error } = detailsOf(method, details).safeParse(details);
  if (data) return data;
  const issues = error.issues.map((issue) => ({ ...issue, path: ['details', ...issue.path] }));
  throw validationProblem({ issues }, 'body', { details });
}

/** The ABA checksum: the digits, weighted 3, 7, 1, add up to a multiple of 10. */
function isRoutingNumber(digits: string): boolean {
  return [...digits].reduce((sum, digit, at) => sum + Number(digit) * ([3, 7, 1][at % 3] as number), 0) % 10 === 0;
}
