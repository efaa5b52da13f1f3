/** Reads what a domain asks receivers to do with emails that fail SPF and DKIM: RFC 7489, section 6.6.3 "Policy Discovery". */
import { getDomain } from 'tldts';
import type { Dns } from './dns.ts';
import { parseTags } from './tags.ts';
import { RecordFault, type Verdict, verdictOf } from './verdict.ts';

const policies = ['none', 'quarantine', 'reject'];

export function checkDmarc(domain: string, dns: Dns): Promise<Verdict> {
  const record = async () => (await findDmarc(domain, dns)).texts[0] ?? null;
  return verdictOf(`DMARC record of ${domain}`, () => check(domain, dns), record);
}

async function check(domain: string, dns: Dns): Promise<Verdict> {
  const { texts, at } = await findDmarc(domain, dns);
  const [record] = texts;
  if (record === undefined) {
    const detail = `${domain} has no DMARC record. Add the TXT record \`v=DMARC1; p=none; rua=mailto:dmarc@${at}\` at \`_dmarc.${at}\`.`;
    return { status: 'missing', record: null, detail };
  }
  if (texts.length > 1)
    throw new RecordFault(`exists ${texts.length} times, and receivers use none. Remove all but one.`);
  const policy = policyOf(record, at !== domain);
  const source = at === domain ? domain : `${domain}, which is that of ${at},`;
  const effect = policy === 'none' ? 'it asks for reports and changes nothing' : 'emails that fail it are treated so';
  return { status: 'pass', record, detail: `The DMARC record of ${source} has the policy \`${policy}\`: ${effect}.` };
}

/** The domain's own record, else that of its organizational domain. */
async function findDmarc(domain: string, dns: Dns): Promise<{ texts: string[]; at: string }> {
  const organization = getDomain(domain, { allowPrivateDomains: true }) ?? domain;
  const own = await textsAt(domain, dns);
  if (own.length > 0 || organization === domain) return { texts: own, at: domain };
  return { texts: await textsAt(organization, dns), at: organization };
}

async function textsAt(domain: string, dns: Dns): Promise<string[]> {
  const texts = await dns.texts(`_dmarc.${domain}`);
  return Array.isArray(texts) ? texts.filter((text) => /^v\s*=\s*DMARC1\s*(?:;|$)/.test(text)) : [];
}

/** "If a retrieved policy record does not contain a valid "p" tag": with a `rua` it is `none`, else there is no policy. @throws RecordFault */
function policyOf(record: string, is_inherited: boolean): string {
  const tags = parseTags(record);
  if (!tags) throw new RecordFault('is not a list of `tag=value`, separated by semicolons. Correct it.');
  const policy = ((is_inherited && tags.get('sp')) || tags.get('p'))?.toLowerCase();
  if (policy && policies.includes(policy)) return policy;
  if (tags.get('rua')?.startsWith('mailto:')) return 'none';
  throw new RecordFault(`has no valid policy. Add \`p=none\`, \`p=quarantine\` or \`p=reject\`.`);
}
