import { urlBelow } from '../../../core/net/answer.ts';
import { at, listAt, quoted, textAt } from './answer.ts';
import { type Answer, type CallResult, callProvider, type ProviderCall } from './provider_call.ts';
import type { Credentials, PayoutErrorCode, RailContext } from './rail.ts';

export const title = 'Wise';

export const callWise = (
  { path, query, ...call }: Pick<ProviderCall, 'method' | 'body'> & { path: string; query?: Record<string, string> },
  { api_token }: Credentials,
  context: RailContext,
): Promise<CallResult> =>
  callProvider({
    ...call,
    url: urlBelow(context.url, path, query),
    headers: { 'content-type': 'application/json', authorization: `Bearer ${api_token}` },
    cut_off: context.cut_off,
  });

/** "The endpoint is rejected with 403 to inform you that stronger authentication is needed", with a one-time token. */
export const wantsSecondFactor = ({ status, headers }: Answer): boolean =>
  status === 403 && headers['x-2fa-approval'] !== undefined;

interface WiseError {
  code: string | undefined;
  path: string | undefined;
  message: string | undefined;
}

/** Wise has one form for errors of fields, `{errors: [{code, message, path}]}`, and several for all others. */
export function errorsIn(body: unknown): WiseError[] {
  const errors = listAt(body, 'errors');
  return (errors.length > 0 ? errors : [body]).map((error) => ({
    code: textAt(error, 'code') ?? textAt(error, 'errorCode') ?? textAt(error, 'error'),
    path: textAt(error, 'path'),
    message: textAt(error, 'message') ?? textAt(error, 'errorMessage') ?? textAt(error, 'error_description'),
  }));
}

export function messageOf({ status, body }: Answer, { api_token = '' }: Credentials): string {
  const words = errorsIn(body).flatMap(({ code, message }) =>
    [code, message].filter((word) => word !== undefined).join(': '),
  );
  return quoted(words.join('; '), [api_token]) || `Wise answered ${status}.`;
}

export function errorCodeOf(body: unknown): PayoutErrorCode {
  for (const { code = '', path = '' } of errorsIn(body)) {
    if (/insufficient[_.]?funds|balance\.payment-option-unavailable/i.test(code)) return 'insufficient_funds';
    if (/limit/i.test(code)) return 'limit_exceeded';
    if (/currency/i.test(code) || /currency/i.test(path)) return 'currency_not_supported';
    if (/recipient|targetAccount/i.test(code) || /recipient|targetAccount/i.test(path)) return 'recipient_invalid';
  }
  return 'provider_rejected';
}

/** Its ids are numbers, which JSON gives as such. */
export const idOf = (body: unknown): string | undefined => {
  const id = at(body, 'id');
  return typeof id === 'number' && Number.isSafeInteger(id) ? String(id) : undefined;
};
