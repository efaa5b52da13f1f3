/**
 * Wise Platform: a quote, a transfer from it, and its funding from the balance of the profile. Each id is kept before the next call, so that
 * a crash repeats nothing: what has no transfer id that is kept was never funded by Rail.
 * https://docs.wise.com/guides/product/send-money/use-cases/enterprise/send-money
 */
import { z } from 'zod';
import { Problem } from '../../../core/values/problem.ts';
import { at, listAt, textAt } from './answer.ts';
import { asksAgain } from './provider_call.ts';
import type { Credentials, Rail, RailContext, Refusal } from './rail.ts';
import { callWise, messageOf, title } from './wise_call.ts';
import { cancel, lookUp, submit } from './wise_transfer.ts';
import { verifyWiseWebhook } from './wise_webhook.ts';

/** The UK and the European Economic Area, as Wise writes countries: https://docs.wise.com/guides/developer/auth-and-security/sca-and-2fa */
const second_factor_countries = new Set(
  `gbr aut bel bgr hrv cyp cze dnk est fin fra deu grc hun isl irl ita lie ltu lux lva mlt nld nor pol prt rou svk svn esp swe`.split(
    ' ',
  ),
);

export const wise: Rail = {
  name: 'wise',
  title,
  credentials: z.strictObject({
    api_token: z
      .string()
      .min(8)
      .max(4096)
      .describe('An API token with full access, from the settings of your Wise account.'),
    profile_id: z
      .string()
      .regex(/^[1-9][0-9]{0,15}$/, 'must be the number of a profile')
      .describe('The profile whose balance pays.'),
    source_currency: z
      .string()
      .regex(/^[A-Z]{3}$/, 'must be 3 capital letters, such as EUR')
      .optional()
      .describe("The balance that pays, if not the one in the payout's own currency. Wise converts at its rate."),
    webhook_public_key: z
      .string()
      .max(4096)
      .regex(/^-----BEGIN PUBLIC KEY-----[A-Za-z0-9+/=\s]+-----END PUBLIC KEY-----\s*$/, 'must be a public key in PEM')
      .optional()
      .describe('The key that Wise signs webhooks with, once it publishes another one than Rail knows.'),
  }),
  secrets: ['api_token'],
  urls: { test: 'https://api.wise-sandbox.com', live: 'https://api.wise.com' },
  key_life_s: null,
  refuse,
  check,
  submit,
  lookUp,
  cancel,
  verifyWebhook: verifyWiseWebhook,
};

/** Wise's quote decides what can be sent: that depends on the recipient's country and account. */
function refuse(amount_minor: number, currency: string): Refusal | undefined {
  if (amount_minor > 0) return undefined;
  return { error_code: 'provider_rejected', message: `Wise does not transfer ${amount_minor} ${currency}.` };
}

async function check(credentials: Credentials, context: RailContext): Promise<{ account: string; warnings: string[] }> {
  const result = await callWise({ method: 'GET', path: '/v2/profiles' }, credentials, context);
  if (result.kind === 'answered' && (result.status === 401 || result.status === 403)) {
    const message = `Wise refuses the token in this mode: ${messageOf(result, credentials)}`;
    throw new Problem('invalid_parameter', message, { param: 'api_token' });
  }
  if (result.kind !== 'answered' || result.status !== 200 || !Array.isArray(result.body)) {
    throw new Problem('service_unavailable', `${reasonOf(asksAgain(title, result, context.now))} Try again.`);
  }
  const profile = listAt(result.body).find((each) => String(at(each, 'id')) === credentials.profile_id);
  if (!profile) {
    throw new Problem('invalid_parameter', 'The token has no access to this profile.', { param: 'profile_id' });
  }
  return { account: nameOf(profile), warnings: warningsFor(profile) };
}

const reasonOf = (outcome: object): string => textAt(outcome, 'reason') ?? '';

const nameOf = (profile: unknown): string =>
  textAt(profile, 'businessName') ??
  textAt(profile, 'details', 'name') ??
  [textAt(profile, 'firstName'), textAt(profile, 'lastName')].filter(Boolean).join(' ');

function warningsFor(profile: unknown): string[] {
  const country = (textAt(profile, 'address', 'countryIso3Code') ?? '').toLowerCase();
  if (country !== '' && !second_factor_countries.has(country)) return [];
  return [
    country === ''
      ? 'Wise does not say where the profile is. In the UK and the EEA, Wise wants a second factor for the funding of each transfer.'
      : 'The profile is in the UK or the EEA, where Wise wants a second factor for the funding of each transfer. Rail then only prepares transfers: fund them at wise.com within 14 days.',
  ];
}
