/** SPF records by RFC 7208, section 4.6: "Record Evaluation". */
import { isIP, isIPv4 } from 'node:net';
import type { Dns } from './dns.ts';
import { RecordFault } from './verdict.ts';

export type SpfResult = 'pass' | 'fail' | 'softfail' | 'neutral';

export type Mechanism =
  | { name: 'all' }
  | { name: 'include' | 'exists'; domain: string }
  | { name: 'a' | 'mx'; domain: string | undefined; ipv4_bits: number; ipv6_bits: number }
  | { name: 'ptr' }
  | { name: 'ip4' | 'ip6'; network: string; bits: number };

export interface SpfRecord {
  directives: { result: SpfResult; mechanism: Mechanism }[];
  redirect: string | undefined;
}

const results: Record<string, SpfResult> = { '+': 'pass', '-': 'fail', '~': 'softfail', '?': 'neutral' };

/** The text of the record of a domain. Undefined where it has none. @throws RecordFault, NoAnswer */
export async function findSpf(domain: string, dns: Dns): Promise<string | undefined> {
  const records = await spfTexts(domain, dns);
  if (records.length > 1) {
    throw new RecordFault(`exists ${records.length} times, which receivers refuse. Merge the records into one.`);
  }
  return records[0];
}

/** All of them: more than one is a fault. @throws NoAnswer */
export async function spfTexts(domain: string, dns: Dns): Promise<string[]> {
  const texts = await dns.texts(domain);
  return Array.isArray(texts) ? texts.filter((text) => /^v=spf1(?: |$)/i.test(text)) : [];
}

/** @throws RecordFault */
export function parseSpf(text: string): SpfRecord {
  const record: SpfRecord = { directives: [], redirect: undefined };
  for (const term of text.split(' ').slice(1)) {
    if (term === '') continue;
    const modifier = /^([a-z][a-z0-9_.-]*)=(.*)/is.exec(term);
    if (!modifier) record.directives.push(parseDirective(term));
    else if (modifier[1]?.toLowerCase() === 'redirect') {
      if (record.redirect !== undefined || !modifier[2]) throw syntaxFault(term);
      record.redirect = modifier[2];
    }
  }
  return record;
}

function parseDirective(term: string): SpfRecord['directives'][number] {
  const [, sign = '', name = '', rest = ''] = /^([+?~-]?)([a-z0-9]+)(.*)/is.exec(term) ?? [];
  const mechanism = parseMechanism(name.toLowerCase(), rest);
  if (!mechanism) throw syntaxFault(term);
  return { result: results[sign || '+'] as SpfResult, mechanism };
}

function parseMechanism(name: string, rest: string): Mechanism | undefined {
  if (name === 'all') return rest === '' ? { name } : undefined;
  if (name === 'ptr') return { name };
  if (name === 'include' || name === 'exists') return /^:./.test(rest) ? { name, domain: rest.slice(1) } : undefined;
  if (name === 'a' || name === 'mx') return parseHost(name, rest);
  return name === 'ip4' || name === 'ip6' ? parseNetwork(name, rest) : undefined;
}

function parseHost(name: 'a' | 'mx', rest: string): Mechanism | undefined {
  const parts = /^(?::([^/]+))?(?:\/(\d{1,2}))?(?:\/\/(\d{1,3}))?$/.exec(rest);
  if (!parts) return undefined;
  const [ipv4_bits, ipv6_bits] = [Number(parts[2] ?? 32), Number(parts[3] ?? 128)];
  return ipv4_bits <= 32 && ipv6_bits <= 128 ? { name, domain: parts[1], ipv4_bits, ipv6_bits } : undefined;
}

function parseNetwork(name: 'ip4' | 'ip6', rest: string): Mechanism | undefined {
  const [, network = '', length] = /^:([0-9a-f:.]+)(?:\/(\d{1,3}))?$/i.exec(rest) ?? [];
  const most = name === 'ip4' ? 32 : 128;
  const bits = Number(length ?? most);
  const is_network = isIP(network) === (name === 'ip4' ? 4 : 6) && isIPv4(network) === (name === 'ip4');
  return is_network && bits <= most ? { name, network, bits } : undefined;
}

const syntaxFault = (term: string): RecordFault =>
  new RecordFault(
    `has the term \`${term.slice(0, 100)}\`, which is not valid. Receivers refuse the whole record: correct the term.`,
  );
