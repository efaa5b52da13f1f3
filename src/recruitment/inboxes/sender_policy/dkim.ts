/** Checks that a domain has a public key that verifies signatures of its emails: RFC 6376, section 3.6.1. */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { type Answer, type Dns, NoAnswer } from './dns.ts';
import { parseTags } from './tags.ts';
import { type Verdict, verdictOf } from './verdict.ts';

/** Gmail and others do not verify with shorter ones. */
const least_rsa_bits = 1024;
const ed25519_bytes = 32;

interface Found {
  selector: string;
  record: string;
  /** The reason why receivers do not verify with it. */
  fault: string | undefined;
}

/** DNS does not list the selectors of a domain: those that are common are tried. */
export function checkDkim(domain: string, selectors: string[], dns: Dns): Promise<Verdict> {
  const none = async () => null;
  return verdictOf(`DKIM keys of ${domain}`, () => check(domain, selectors, dns), none);
}

async function check(domain: string, selectors: string[], dns: Dns): Promise<Verdict> {
  const answers = await Promise.all(selectors.map((selector) => keyAt(selector, domain, dns)));
  const found = answers.filter((each): each is Found => typeof each === 'object');
  const valid = found.filter(({ fault }) => fault === undefined);
  const [first] = [...valid, ...found];
  if (first?.fault === undefined && first) {
    const names = valid.map(({ selector }) => `\`${selector}\``).join(', ');
    return { status: 'pass', record: first.record, detail: `${domain} has a valid DKIM key at the selector ${names}.` };
  }
  if (first) {
    const detail = `The DKIM key of ${domain} at the selector \`${first.selector}\` ${first.fault} Create a new key at your email provider and add its record.`;
    return { status: 'invalid', record: first.record, detail };
  }
  if (answers.includes('unanswered')) throw new NoAnswer();
  const remedy = 'Turn on DKIM at your email provider, and add the record that it gives you.';
  if ((await dns.texts(`_domainkey.${domain}`)) === 'no_name') {
    return { status: 'missing', record: null, detail: `${domain} has no DKIM key. ${remedy}` };
  }
  const detail = `No DKIM key of ${domain} was found at a common selector; DNS does not list others. Verify that your email provider signs with DKIM.`;
  return { status: 'unknown', record: null, detail };
}

async function keyAt(selector: string, domain: string, dns: Dns): Promise<Found | 'none' | 'unanswered'> {
  const texts = await dns.texts(`${selector}._domainkey.${domain}`).catch(unanswered);
  if (!Array.isArray(texts)) return texts === 'unanswered' ? 'unanswered' : 'none';
  // A domain with the same records at every name has no keys.
  const record = texts.find((text) => /(?:^|;)\s*p\s*=/i.test(text));
  return record === undefined ? 'none' : { selector, record, fault: faultOf(record) };
}

function unanswered(error: unknown): Answer<string> | 'unanswered' {
  if (error instanceof NoAnswer) return 'unanswered';
  throw error;
}

/** The end of a sentence; undefined where there is no fault. */
function faultOf(record: string): string | undefined {
  const tags = parseTags(record);
  if (!tags || (tags.get('v') ?? 'DKIM1') !== 'DKIM1') return 'is not a valid record.';
  const key = (tags.get('p') ?? '').replace(/\s/g, '');
  if (key === '') return 'is revoked.';
  const bytes = Buffer.from(key, 'base64');
  const kind = tags.get('k')?.toLowerCase() ?? 'rsa';
  if (kind === 'ed25519') return bytes.length === ed25519_bytes ? undefined : 'is not a valid key.';
  if (kind !== 'rsa') return `is of the kind \`${kind.slice(0, 20)}\`, which receivers do not know.`;
  const bits = rsaKey(bytes)?.asymmetricKeyDetails?.modulusLength;
  if (bits === undefined) return 'is not a valid key.';
  return bits < least_rsa_bits ? `has ${bits} bits; receivers demand ${least_rsa_bits} or more.` : undefined;
}

function rsaKey(key: Buffer): KeyObject | undefined {
  for (const type of ['spki', 'pkcs1'] as const) {
    try {
      const found = createPublicKey({ key, format: 'der', type });
      if (found.asymmetricKeyType === 'rsa') return found;
    } catch {}
  }
  return undefined;
}
