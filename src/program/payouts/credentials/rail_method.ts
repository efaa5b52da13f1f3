/** The rails with credentials, and the fields of these: a provider's keys, or the account that bank files pay from. */
import { z } from 'zod';
import { databaseTime } from '../../../core/values/clock.ts';
import { text } from '../../../core/values/fields.ts';
import { Problem } from '../../../core/values/problem.ts';
import { validationProblem } from '../../../core/values/validation.ts';
import { bic, iban } from '../../partners/payout_method.ts';
import { sepaText } from '../bank/latin.ts';
import { type BankMethod, most_of_name } from '../bank/transfer.ts';
import type { Credentials, RailMode, RailName } from '../rails/rail.ts';
import { isRailName, rails } from '../rails/rails.ts';

export type RailMethod = RailName | BankMethod;

export const rail_methods = ['bank_transfer', 'wire', 'paypal', 'wise', 'stripe'] as const satisfies RailMethod[];

const titles = { bank_transfer: 'bank transfer', wire: 'wire' };
export const titleOf = (rail: RailMethod): string => (isRailName(rail) ? rails[rail].title : titles[rail]);

/** The debtor in a file for a bank. */
const Debtor = z.strictObject({
  name: text
    .min(1)
    .max(200)
    .refine((name) => sepaText(name, most_of_name) !== '', 'must have a letter or digit')
    .describe('The name of the account holder. Banks read its first 70 characters.'),
  iban: iban.describe('The account that pays.'),
  bic: bic.describe('The bank of the account.'),
});

/** The fields of a rail's credentials. */
export const credentialsSchema = (rail: RailMethod): z.ZodObject =>
  isRailName(rail) ? rails[rail].credentials : Debtor;

/** By rail: the fields of its credentials and what they are, in Markdown. */
export const credentials_doc = rail_methods
  .map((rail) => {
    const fields = Object.entries(credentialsSchema(rail).shape).map(
      ([name, field]) =>
        `\`${name}\`${field.safeParse(undefined).success ? ' (optional)' : ''}: ${(field as z.ZodType).description}`,
    );
    return `- \`${rail}\`: ${fields.join(' ')}`;
  })
  .join('\n');

/** @throws Problem for the first invalid field, as `credentials.<field>` */
export function parseCredentials(rail: RailMethod, credentials: Record<string, string>): Credentials {
  const { data, error } = credentialsSchema(rail).safeParse(credentials);
  if (data) return data as Credentials;
  const issues = error.issues.map((issue) => ({ ...issue, path: ['credentials', ...issue.path] }));
  throw validationProblem({ issues }, 'body', { credentials });
}

/** The field that distinguishes one account or key from another. */
const identifying: Readonly<Record<RailMethod, string>> = {
  bank_transfer: 'iban',
  wire: 'iban',
  paypal: 'client_id',
  wise: 'profile_id',
  stripe: 'secret_key',
};
export const hintOf = (rail: RailMethod, credentials: Credentials): string =>
  (credentials[identifying[rail]] as string).slice(-4);

export interface CheckedAccount {
  account: string;
  warnings: string[];
}

/** Less than a request waits for its answer. */
const check_ms = 8_000;

/**
 * Tries credentials at the provider. Moves no money. A bank cannot be asked.
 * @throws Problem invalid_parameter for `credentials.<field>`; service_unavailable
 */
export async function tryCredentials(
  rail: RailMethod,
  credentials: Credentials,
  { mode, url }: { mode: RailMode; url: string },
): Promise<CheckedAccount> {
  if (!isRailName(rail)) return { account: credentials.name as string, warnings: [] };
  const context = { mode, url, now: new Date(databaseTime()), cut_off: AbortSignal.timeout(check_ms) };
  return rails[rail].check(credentials, context).catch((error: unknown) => {
    throw error instanceof Problem ? refusalOf(error) : error;
  });
}

/** A rail names its own field, and does not know where that stands in a request. */
function refusalOf({ code, message, details }: Problem): Problem {
  if (code === 'service_unavailable') return new Problem(code, message, { headers: { 'Retry-After': '5' } });
  return new Problem(code, message, details.param === undefined ? {} : { param: `credentials.${details.param}` });
}
