/** Wise signs the body of a webhook with RSA and SHA-256: https://docs.wise.com/guides/developer/webhooks/event-handling */
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { at, textAt } from './answer.ts';
import {
  type Credentials,
  type RailMode,
  type ReceivedWebhook,
  type WebhookContext,
  WebhookRefused,
  type WebhookSubjects,
} from './rail.ts';

/** Wise repeats a webhook for two weeks and some days. */
const longest_age_ms = 20 * 86_400_000;
const most_ahead_ms = 5 * 60_000;

/** Published at the address above. */
const public_keys: Readonly<Record<RailMode, string>> = {
  live: `-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAvO8vXV+JksBzZAY6GhSO
XdoTCfhXaaiZ+qAbtaDBiu2AGkGVpmEygFmWP4Li9m5+Ni85BhVvZOodM9epgW3F
bA5Q1SexvAF1PPjX4JpMstak/QhAgl1qMSqEevL8cmUeTgcMuVWCJmlge9h7B1CS
D4rtlimGZozG39rUBDg6Qt2K+P4wBfLblL0k4C4YUdLnpGYEDIth+i8XsRpFlogx
CAFyH9+knYsDbR43UJ9shtc42Ybd40Afihj8KnYKXzchyQ42aC8aZ/h5hyZ28yVy
Oj3Vos0VdBIs/gAyJ/4yyQFCXYte64I7ssrlbGRaco4nKF3HmaNhxwyKyJafz19e
HwIDAQAB
-----END PUBLIC KEY-----`,
  test: `-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAwpb91cEYuyJNQepZAVfP
ZIlPZfNUefH+n6w9SW3fykqKu938cR7WadQv87oF2VuT+fDt7kqeRziTmPSUhqPU
ys/V2Q1rlfJuXbE+Gga37t7zwd0egQ+KyOEHQOpcTwKmtZ81ieGHynAQzsn1We3j
wt760MsCPJ7GMT141ByQM+yW1Bx+4SG3IGjXWyqOWrcXsxAvIXkpUD/jK/L958Cg
nZEgz0BSEh0QxYLITnW1lLokSx/dTianWPFEhMC9BgijempgNXHNfcVirg1lPSyg
z7KqoKUN0oHqWLr2U1A+7kqrl6O2nx3CKs1bj1hToT1+p4kcMoHXA7kA+VBLUpEs
VwIDAQAB
-----END PUBLIC KEY-----`,
};

export async function verifyWiseWebhook(
  { headers, raw_body }: ReceivedWebhook,
  { profile_id, webhook_public_key }: Credentials,
  { mode, now }: WebhookContext,
): Promise<WebhookSubjects> {
  const signature = headers['x-signature-sha256'];
  if (typeof signature !== 'string') throw new WebhookRefused('The header x-signature-sha256 is missing.');
  const key = keyOf(webhook_public_key ?? public_keys[mode]);
  if (!verify('sha256', raw_body, key, Buffer.from(signature, 'base64'))) {
    throw new WebhookRefused('The signature does not match.');
  }
  const none = { references: [], idempotency_keys: [] };
  if (headers['x-test-notification'] === 'true') return none;
  const event = parse(raw_body);
  requireRecent(Date.parse(textAt(event, 'sent_at') ?? ''), now);
  const id = at(event, 'data', 'resource', 'id');
  if (!textAt(event, 'event_type')?.startsWith('transfers#') || !Number.isSafeInteger(id)) return none;
  if (String(at(event, 'data', 'resource', 'profile_id')) !== profile_id) return none;
  return { references: [String(id)], idempotency_keys: [] };
}

function keyOf(pem: string): KeyObject {
  try {
    return createPublicKey(pem);
  } catch {
    throw new WebhookRefused('webhook_public_key is not a public key.');
  }
}

function parse(raw_body: Buffer): unknown {
  try {
    return JSON.parse(raw_body.toString('utf8'));
  } catch {
    throw new WebhookRefused('The body is not JSON.');
  }
}

function requireRecent(sent_at: number, now: Date): void {
  const age_ms = now.getTime() - sent_at;
  if (!(age_ms <= longest_age_ms && age_ms >= -most_ahead_ms)) throw new WebhookRefused('The webhook is stale.');
}
