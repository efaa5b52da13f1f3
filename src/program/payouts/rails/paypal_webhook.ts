/**
 * PayPal's webhooks, verified here and not by PayPal: RSA with SHA-256 over `id|time|webhook_id|crc32(body)`, with the key of a certificate
 * that the webhook names. https://developer.paypal.com/api/rest/webhooks/rest/
 */
import { verify, X509Certificate } from 'node:crypto';
import { getCACertificates } from 'node:tls';
import { crc32 } from 'node:zlib';
import { textAt } from './answer.ts';
import { callProvider } from './provider_call.ts';
import {
  type Credentials,
  type RailMode,
  type ReceivedWebhook,
  type WebhookContext,
  WebhookNotVerifiable,
  WebhookRefused,
  type WebhookSubjects,
} from './rail.ts';

const certificate_hosts: Readonly<Record<RailMode, string>> = {
  live: 'https://api.paypal.com',
  test: 'https://api.sandbox.paypal.com',
};
const provider_urls = ['https://api-m.paypal.com', 'https://api-m.sandbox.paypal.com'];
const certificate_path = /^\/v1\/notifications\/certs\/CERT-[A-Za-z0-9-]{1,100}$/;
const certificate_name = /^CN=messageverificationcerts(?:\.sandbox)?\.paypal\.com$/m;
/** PayPal repeats a webhook for three days. */
const longest_age_ms = 4 * 86_400_000;
const most_ahead_ms = 5 * 60_000;
const most_certificates = 16;

/** The certificates of this process, by URL and authority: their chain was verified. */
const certificates = new Map<string, X509Certificate>();

export async function verifyPayPalWebhook(
  { headers, raw_body }: ReceivedWebhook,
  credentials: Credentials,
  context: WebhookContext,
): Promise<WebhookSubjects> {
  const header = (name: string): string => {
    const value = headers[name];
    if (typeof value !== 'string' || value === '') throw new WebhookRefused(`The header ${name} is missing.`);
    return value;
  };
  const webhook_id = credentials.webhook_id;
  if (webhook_id === undefined) throw new WebhookRefused('The credentials have no webhook_id.');
  const [id, time] = [header('paypal-transmission-id'), header('paypal-transmission-time')];
  if (header('paypal-auth-algo') !== 'SHA256withRSA') throw new WebhookRefused('The algorithm is not SHA256withRSA.');
  requireRecent(Date.parse(time), context.now);
  const subjects = subjectsOf(parse(raw_body));
  const certificate = await certificateAt(header('paypal-cert-url'), context);
  const signed = Buffer.from(`${id}|${time}|${webhook_id}|${crc32(raw_body)}`);
  const signature = Buffer.from(header('paypal-transmission-sig'), 'base64');
  if (!verify('sha256', signed, certificate.publicKey, signature)) {
    throw new WebhookRefused('The signature does not match.');
  }
  return subjects;
}

function requireRecent(sent_at: number, now: Date): void {
  const age_ms = now.getTime() - sent_at;
  if (!(age_ms <= longest_age_ms && age_ms >= -most_ahead_ms)) throw new WebhookRefused('The webhook is stale.');
}

function parse(raw_body: Buffer): unknown {
  try {
    return JSON.parse(raw_body.toString('utf8'));
  } catch {
    throw new WebhookRefused('The body is not JSON.');
  }
}

/** Item events name the item and its key; batch events name the batch's key, which is the same. */
function subjectsOf(event: unknown): WebhookSubjects {
  const event_type = textAt(event, 'event_type');
  if (event_type === undefined) throw new WebhookRefused('The body is not an event.');
  if (!/^PAYMENT\.PAYOUTS(?:BATCH|-ITEM)\./.test(event_type)) return { references: [], idempotency_keys: [] };
  const keys = [
    textAt(event, 'resource', 'payout_item', 'sender_item_id'),
    textAt(event, 'resource', 'batch_header', 'sender_batch_header', 'sender_batch_id'),
  ];
  return {
    references: [textAt(event, 'resource', 'payout_item_id')].filter((reference) => reference !== undefined),
    idempotency_keys: keys.filter((key) => key !== undefined),
  };
}

async function certificateAt(text: string, context: WebhookContext): Promise<X509Certificate> {
  const url = certificateUrl(text, context);
  const key = `${url.href} ${context.authorities?.join() ?? ''}`;
  const kept = certificates.get(key);
  if (kept && isValidAt(kept, context.now)) return kept;
  const result = await callProvider({ method: 'GET', url, cut_off: context.cut_off });
  if (result.kind !== 'answered' || result.status === 429 || result.status >= 500) {
    throw new WebhookNotVerifiable('The certificate of the webhook could not be fetched.');
  }
  if (result.status !== 200) throw new WebhookRefused(`PayPal has no such certificate (${result.status}).`);
  const certificate = verified(result.text, context);
  certificates.set(key, certificate);
  for (const oldest of certificates.keys()) if (certificates.size > most_certificates) certificates.delete(oldest);
  return certificate;
}

/** Returns the certificate's URL. The certificate decides the key, so only PayPal's own host of this mode may serve it, or the provider's URL that is set. */
function certificateUrl(text: string, { mode, url }: WebhookContext): URL {
  const named = URL.parse(text);
  const allowed = provider_urls.includes(url)
    ? [certificate_hosts[mode]]
    : [certificate_hosts[mode], new URL(url).origin];
  if (!named || !allowed.includes(named.origin) || !certificate_path.test(named.pathname)) {
    throw new WebhookRefused('The certificate is not at a URL of PayPal.');
  }
  if (named.username !== '' || named.password !== '' || named.search !== '') {
    throw new WebhookRefused('The certificate is not at a URL of PayPal.');
  }
  return named;
}

function verified(pem: string, { now, authorities = getCACertificates('default') }: WebhookContext): X509Certificate {
  const [certificate, ...issuers] = certificatesIn(pem);
  const roots = authorities.flatMap(certificatesIn);
  if (!certificate || !certificate_name.test(certificate.subject)) {
    throw new WebhookRefused("The certificate is not that of PayPal's webhooks.");
  }
  if (certificate.publicKey.asymmetricKeyType !== 'rsa') throw new WebhookRefused('The certificate has no RSA key.');
  if (!leadsToRoot(certificate, { issuers, roots, now, depth: 0 })) {
    throw new WebhookRefused('The certificate was not issued by a known authority, or is not valid now.');
  }
  return certificate;
}

function certificatesIn(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    return blocks.slice(0, 10).map((block) => new X509Certificate(block));
  } catch {
    return [];
  }
}

interface Chain {
  issuers: X509Certificate[];
  roots: X509Certificate[];
  now: Date;
  depth: number;
}

function leadsToRoot(certificate: X509Certificate, { issuers, roots, now, depth }: Chain): boolean {
  if (depth > 5 || !isValidAt(certificate, now)) return false;
  const isIssuedBy = (issuer: X509Certificate): boolean =>
    issuer.ca && isValidAt(issuer, now) && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
  if (roots.some(isIssuedBy)) return true;
  return issuers.some((issuer) => isIssuedBy(issuer) && leadsToRoot(issuer, { issuers, roots, now, depth: depth + 1 }));
}

const isValidAt = ({ validFromDate, validToDate }: X509Certificate, now: Date): boolean =>
  validFromDate <= now && now <= validToDate;
