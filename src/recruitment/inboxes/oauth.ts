/** Access tokens by RFC 6749, section 6: "Refreshing an Access Token". */
import { z } from 'zod';
import { parsedJson, readText } from '../../core/net/answer.ts';
import type { Services } from '../../core/resource/services.ts';
import { Problem } from '../../core/values/problem.ts';
import type { OAuthProvider } from './settings.ts';

export interface OAuthClient {
  provider: OAuthProvider;
  client_id: string;
  client_secret: string;
  refresh_token: string;
}

export interface Tokens {
  access_token: string;
  /** The one to use from now on: providers may replace it. */
  refresh_token: string;
}

const token_urls: Record<OAuthProvider, string> = {
  google: 'https://oauth2.googleapis.com/token',
  microsoft: 'https://login.microsoftonline.com/common/oauth2/v2.0/token',
};
/** Google gives the scopes of the refresh token; Microsoft wants those of mail named. */
const scopes: Partial<Record<OAuthProvider, string>> = {
  microsoft: 'https://outlook.office.com/SMTP.Send https://outlook.office.com/IMAP.AccessAsUser.All offline_access',
};
const timeout_ms = 8_000;
const most_answer_bytes = 64 * 1024;

const Answer = z.object({ access_token: z.string().min(1), refresh_token: z.string().min(1).optional() });
/** RFC 6749, 5.2. An answer without it is none of the provider's. */
const Refusal = z.object({ error: z.string() });
/** RFC 6749, 4.1.2.1, RFC 8628 and their like: the token may be right. */
const temporary_errors =
  /^(temporarily_unavailable|server_error|internal_failure|slow_down|rate_limit_exceeded|timeout)$/;

/** @throws Problem oauth_failed, service_unavailable */
export async function refreshTokens(client: OAuthClient, services: Services): Promise<Tokens> {
  const { provider, refresh_token } = client;
  const { status, body } = await post(provider, client, services);
  const answer = Answer.safeParse(body);
  if (status === 200 && answer.success) return { refresh_token, ...answer.data };
  const refusal = Refusal.safeParse(body).data?.error;
  if (status < 500 && status !== 429 && refusal !== undefined && !temporary_errors.test(refusal))
    throw refusedToken(provider, refusal);
  throw unavailable(provider);
}

async function post(
  provider: OAuthProvider,
  { client_id, client_secret, refresh_token }: OAuthClient,
  { provider_urls }: Services,
): Promise<{ status: number; body: unknown }> {
  const { request } = await import('undici'); // with the first call: a process that makes none is spared it
  const scope = scopes[provider];
  const form = new URLSearchParams({
    ...{ grant_type: 'refresh_token', client_id, client_secret, refresh_token },
    ...(scope ? { scope } : {}),
  });
  try {
    const answer = await request(provider_urls[provider] ?? token_urls[provider], {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: form.toString(),
      signal: AbortSignal.timeout(timeout_ms),
    });
    const text = await readText(answer.body, most_answer_bytes);
    return { status: answer.statusCode, body: parsedJson(text) };
  } catch {
    throw unavailable(provider);
  }
}

/** The code alone: descriptions of providers may repeat what they were sent. */
const refusedToken = (provider: OAuthProvider, code: string): Problem =>
  new Problem(
    'oauth_failed',
    `${titleOf(provider)} refused the refresh token (${/^[a-z_]{1,64}$/.test(code) ? code : 'invalid_request'}). Grant access again and send the new refresh token.`,
    { param: 'oauth.refresh_token' },
  );

const unavailable = (provider: OAuthProvider): Problem =>
  new Problem('service_unavailable', `${titleOf(provider)} did not answer. Nothing was changed. Retry later.`, {
    headers: { 'Retry-After': '30' },
  });

const titleOf = (provider: OAuthProvider): string => (provider === 'google' ? 'Google' : 'Microsoft');
