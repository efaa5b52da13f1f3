import { createHmac, type KeyObject } from 'node:crypto';
import { Problem } from '../values/problem.ts';
import { sameText } from './vault.ts';

/** The tolerance of a signature's time against the verifier's clock, in seconds: "five minutes". */
export const signature_tolerance_s = 300;

/** HMAC-SHA256 of `<t>.<body>`, hex: the `v1` of a `Rail-Signature`. */
export const signatureOf = (key: string | KeyObject, t: number | string, body: string | Buffer): string =>
  createHmac('sha256', key).update(`${t}.`).update(body).digest('hex');

/** `t=<unix seconds>,v1=<hex>`, one `v1` a key, in the order given. */
export const railSignature = (keys: (string | KeyObject)[], t: number, body: string | Buffer): string =>
  [`t=${t}`, ...keys.map((key) => `v1=${signatureOf(key, t, body)}`)].join(',');

/**
 * Checks a `Rail-Signature` header: any matching `v1` is valid, `t` at most five minutes from `now_ms`.
 * @throws Problem signature_invalid, signature_expired
 */
export function verifySignature(header: string, key: string, body: string | Buffer, now_ms: number): void {
  const parts = header.split(',').map((part) => part.trim());
  const t = parts.find((part) => part.startsWith('t='))?.slice(2) ?? '';
  const presented = parts.filter((part) => part.startsWith('v1=')).map((part) => part.slice(3));
  if (!/^\d{1,12}$/.test(t) || presented.length === 0) {
    throw new Problem(
      'signature_invalid',
      "Rail-Signature must have the form 't=<unix seconds>,v1=<hex HMAC-SHA256>'.",
      {
        param: 'Rail-Signature',
      },
    );
  }
  const expected = signatureOf(key, t, body);
  if (!presented.some((candidate) => sameText(candidate, expected))) {
    throw new Problem(
      'signature_invalid',
      'No v1 in Rail-Signature matches. Compute it as the HMAC-SHA256 of `<t>.<raw body>` with the full API key.',
      {
        param: 'Rail-Signature',
      },
    );
  }
  if (Math.abs(now_ms / 1000 - Number(t)) > signature_tolerance_s) {
    throw new Problem(
      'signature_expired',
      'The t in Rail-Signature is more than five minutes from the current time. Sign the request again.',
      {
        param: 'Rail-Signature',
      },
    );
  }
}
