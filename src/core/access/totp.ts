/** Codes of authenticator apps (RFC 6238): six digits of HMAC-SHA1 over the time in steps of 30 seconds. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

const step_s = 30;
const digits = 6;
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

export const newTotpSecret = (): Buffer => randomBytes(20);

/** Base32 (RFC 4648), as apps take it. */
export function base32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  return (bits.match(/.{1,5}/g) ?? []).map((five) => alphabet[Number.parseInt(five.padEnd(5, '0'), 2)]).join('');
}

/** The URL that an app reads from a QR code. */
export const totpUrl = (secret: Buffer, issuer: string, account: string): string =>
  `otpauth://totp/${encodeURIComponent(`${issuer}:${account}`)}?${new URLSearchParams({ secret: base32(secret), issuer, digits: String(digits), period: String(step_s) })}`;

/** @param step the number of 30 seconds since 1970 */
export function codeAt(secret: Buffer, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac('sha1', secret).update(counter).digest();
  const offset = (mac.at(-1) as number) & 15;
  return String((mac.readUInt32BE(offset) & 0x7fffffff) % 10 ** digits).padStart(digits, '0');
}

/**
 * Returns the step of a code that is valid now, or one step earlier or later, because clocks differ; undefined for a wrong code, and for one that was used.
 * @param after the step of the last code that was accepted
 */
export function stepOfCode(secret: Buffer, code: string, now_ms: number, after: number | null): number | undefined {
  const now = Math.floor(now_ms / 1000 / step_s);
  const given = Buffer.from(
    code
      .replaceAll(/\s/g, '')
      .padEnd(digits)
      .slice(0, digits + 1),
  );
  return [now, now - 1, now + 1].find((step) => {
    const right = Buffer.from(codeAt(secret, step));
    return (after === null || step > after) && given.length === right.length && timingSafeEqual(given, right);
  });
}
