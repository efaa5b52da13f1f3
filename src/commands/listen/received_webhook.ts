/** Verifies a webhook as a receiver does: written from the specification, apart from the code that signs. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import sql from 'sql-template-tag';
import { type Database, run } from '../../core/postgres/database.ts';
import type { Registered } from './listener_endpoint.ts';

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

/** The strict sequence of one endpoint, by the positions in its queue. */
export class Sequence {
  #last = 0;
  readonly #seen = new Set<string>();

  /**
   * Takes an attempt (the delivery's id and the attempt's number) and its queue position. Gives `repeated` for an attempt that was received
   * already, which "at least once" allows, and `wrong` for a new one whose position is before that of one that was received.
   */
  check(attempt: string, queue_position: number): 'good' | 'repeated' | 'wrong' {
    if (this.#seen.has(attempt)) return 'repeated';
    this.#seen.add(attempt);
    if (queue_position <= this.#last) return 'wrong';
    this.#last = queue_position;
    return 'good';
  }
}

export interface Checked {
  at: string;
  type: string;
  event_id: string;
  delivery_id: string;
  attempt: number;
  queue_position: number | null;
  signature: 'good' | 'wrong';
  order: 'good' | 'repeated' | 'wrong';
  faults: string[];
  body: unknown;
}

/** Checks a webhook against the endpoint's secret, and against the sequence of what came before. */
export async function check(
  { headers }: IncomingMessage,
  raw: Buffer,
  database: Database,
  { organization_id, endpoint_id, secret }: Registered,
  sequence: Sequence,
): Promise<Checked> {
  const now = new Date();
  const delivery_id = String(headers['rail-delivery-id'] ?? '');
  const attempt = Number(headers['rail-attempt']);
  const [delivery] = await run<{ queue_position: number }>(
    database,
    sql`select queue_position from webhooks.delivery
      where organization_id = ${organization_id} and id = ${delivery_id} and endpoint_id = ${endpoint_id}`,
  );
  const wrong = signatureFaults(headers, raw, secret, now.getTime());
  const order = delivery ? sequence.check(`${delivery_id} ${attempt}`, delivery.queue_position) : 'wrong';
  const wrong_order = delivery
    ? `queue position ${delivery.queue_position} came late`
    : 'no such delivery to this endpoint';
  return {
    at: now.toISOString(),
    type: String(headers['rail-event'] ?? ''),
    event_id: String(headers['rail-event-id'] ?? ''),
    delivery_id,
    attempt,
    queue_position: delivery?.queue_position ?? null,
    signature: wrong.length === 0 ? 'good' : 'wrong',
    order,
    faults: [...wrong, ...(order === 'wrong' ? [wrong_order] : [])],
    body: parse(raw),
  };
}

function parse(raw: Buffer): unknown {
  try {
    return JSON.parse(raw.toString('utf8'));
  } catch {
    return null;
  }
}

/** For people, on a line of 80 columns unless something is wrong: the time is UTC, and `--json` has the rest. */
export function lineOf({ at, type, event_id, attempt, signature, order, faults }: Checked): string {
  const orders = { good: '✓ order', repeated: '↻ repeated', wrong: '✗ ORDER' };
  const signed = signature === 'good' ? '✓ signature' : '✗ SIGNATURE';
  const again = attempt > 1 ? [`attempt ${attempt}`] : [];
  const which = faults.length > 0 ? [event_id] : [];
  return [at.slice(11, 19), type.padEnd(24), signed, orders[order], ...again, ...which, ...faults].join('  ');
}
