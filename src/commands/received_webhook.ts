/** What a receiver checks of a webhook: written from the specification, apart from the code that signs. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

const tolerance_s = 300;

/**
 * Takes the headers and the body exactly as received, and the endpoint's `whsec_…` secret.
 * Gives what is wrong with `Rail-Signature` and with the Standard Webhooks form; nothing when both are good.
 */
export function signatureFaults(headers: IncomingHttpHeaders, body: Buffer, secret: string, now_ms: number): string[] {
  const rail = railFault(text(headers['rail-signature']), body, secret, now_ms);
  const standard = standardFault(headers, body, secret, now_ms);
  return [rail && `Rail-Signature ${rail}`, standard && `webhook-signature ${standard}`].filter((fault) => !!fault);
}

function railFault(header: string, body: Buffer, secret: string, now_ms: number): string {
  const parts = header.split(',').map((part) => part.split('=', 2) as [string, string]);
  const t = parts.find(([name]) => name === 't')?.[1] ?? '';
  const expected = createHmac('sha256', secret).update(`${t}.`).update(body).digest('hex');
  if (!parts.some(([name, value]) => name === 'v1' && same(value, expected))) return 'is not of this secret and body';
  return timeFault(t, now_ms);
}

function standardFault(headers: IncomingHttpHeaders, body: Buffer, secret: string, now_ms: number): string {
  const t = text(headers['webhook-timestamp']);
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const signed = createHmac('sha256', key)
    .update(`${text(headers['webhook-id'])}.${t}.`)
    .update(body);
  const expected = `v1,${signed.digest('base64')}`;
  const entries = text(headers['webhook-signature']).split(' ');
  if (!entries.some((entry) => same(entry, expected))) return 'is not of this secret and body';
  return timeFault(t, now_ms);
}

const timeFault = (t: string, now_ms: number): string =>
  Math.abs(now_ms / 1_000 - Number(t)) <= tolerance_s ? '' : 'is more than five minutes from this clock';

const text = (header: string | string[] | undefined): string =>
  Array.isArray(header) ? header.join(',') : (header ?? '');

function same(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** The strict sequence of one endpoint, as its places tell it. */
export class Sequence {
  #last = 0;
  readonly #seen = new Set<string>();

  /**
   * Takes a delivery (its id, its attempt) and its place. Gives `repeated` for an attempt that has been here before, which "at least once"
   * allows, and `wrong` for a new one that stands before one that has been here.
   */
  judge(attempt: string, place: number): 'good' | 'repeated' | 'wrong' {
    if (this.#seen.has(attempt)) return 'repeated';
    this.#seen.add(attempt);
    if (place <= this.#last) return 'wrong';
    this.#last = place;
    return 'good';
  }
}
