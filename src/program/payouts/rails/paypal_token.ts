import { createHash } from 'node:crypto';
import { urlBelow } from '../../../core/net/answer.ts';
import { at, textAt } from './answer.ts';
import { type CallResult, callProvider, type ProviderCall } from './provider_call.ts';
import type { Credentials, RailContext } from './rail.ts';

/** A token is replaced this long before it ends. */
const margin_ms = 60_000;
const most_tokens = 1_000;

export interface Token {
  access_token: string;
  scopes: string[];
  app_id: string | undefined;
  expires_at: number;
}

/** The tokens of this process, by a hash of the credentials and the URL that they were issued for, the oldest first. */
const tokens = new Map<string, Token>();

const keyOf = (credentials: Credentials, { url }: RailContext): string =>
  createHash('sha256')
    .update(JSON.stringify([url, credentials.client_id, credentials.client_secret]))
    .digest('base64');

/** The secrets that an answer of PayPal must not show to people. */
export const secretsOf = (credentials: Credentials, context: RailContext): string[] => [
  credentials.client_secret ?? '',
  basic(credentials),
  tokens.get(keyOf(credentials, context))?.access_token ?? '',
];

const basic = ({ client_id, client_secret }: Credentials): string =>
  Buffer.from(`${client_id}:${client_secret}`).toString('base64');

/** A call with a token. A 401 drops the token and repeats the call once with a new one: a call without a valid token has no effect. */
export async function callPayPal(
  call: Pick<ProviderCall, 'method' | 'body' | 'headers'> & { path: string },
  credentials: Credentials,
  context: RailContext,
): Promise<CallResult> {
  const first = await callOnce(call, credentials, context);
  if (first.kind !== 'answered' || first.status !== 401) return first;
  tokens.delete(keyOf(credentials, context));
  return callOnce(call, credentials, context);
}

async function callOnce(
  { path, headers, ...call }: Pick<ProviderCall, 'method' | 'body' | 'headers'> & { path: string },
  credentials: Credentials,
  context: RailContext,
): Promise<CallResult> {
  const token = await tokenOf(credentials, context);
  if ('kind' in token) return token;
  return callProvider({
    ...call,
    url: urlBelow(context.url, path),
    headers: { 'content-type': 'application/json', ...headers, authorization: `Bearer ${token.access_token}` },
    cut_off: context.cut_off,
  });
}

/** A token that is kept, or a new one. Where there is none, the call that it was for was never sent. */
export async function tokenOf(credentials: Credentials, context: RailContext): Promise<Token | CallResult> {
  const key = keyOf(credentials, context);
  const kept = tokens.get(key);
  if (kept && context.now.getTime() < kept.expires_at) return kept;
  const result = await callProvider({
    method: 'POST',
    url: urlBelow(context.url, '/v1/oauth2/token'),
    headers: { 'content-type': 'application/x-www-form-urlencoded', authorization: `Basic ${basic(credentials)}` },
    body: 'grant_type=client_credentials',
    cut_off: context.cut_off,
  });
  if (result.kind !== 'answered') return { kind: 'unreached', reason: `no access token: ${result.reason}` };
  // The id or the secret is wrong: PayPal documents 401, and 400 where the form is.
  if (result.status === 400 || result.status === 401) return { ...result, status: 401 };
  const access_token = textAt(result.body, 'access_token');
  const expires_in_s = Number(at(result.body, 'expires_in'));
  if (result.status !== 200 || access_token === undefined || !(expires_in_s > 0)) {
    return { kind: 'unreached', reason: `no access token: PayPal answered ${result.status}` };
  }
  const token = {
    access_token,
    scopes: (textAt(result.body, 'scope') ?? '').split(' '),
    app_id: textAt(result.body, 'app_id'),
    expires_at: context.now.getTime() + expires_in_s * 1000 - margin_ms,
  };
  tokens.delete(key);
  tokens.set(key, token);
  for (const oldest of tokens.keys()) if (tokens.size > most_tokens) tokens.delete(oldest);
  return token;
}
