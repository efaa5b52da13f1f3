/** Evaluates whether a domain lets a server send, by RFC 7208. */
import { BlockList, isIP, isIPv4 } from 'node:net';
import { type Answer, type Dns, isName } from './dns.ts';
import { expandMacros, type Sending } from './spf_macro.ts';
import { findSpf, type Mechanism, parseSpf, type SpfResult } from './spf_record.ts';
import { RecordFault } from './verdict.ts';

/** "SPF implementations MUST limit the total number of those terms to 10", and void look-ups to two. */
const most_lookups = 10;
const most_voids = 2;
const most_exchangers = 10;

/** The look-ups that an evaluation has used, and the domains that it went through. */
interface Course {
  lookups: number;
  voids: number;
  included: string[];
}

/**
 * Returns the result that receivers find for a server that sends for `domain`. `none`: it has no record.
 * @throws RecordFault for what they call a permanent error, NoAnswer
 */
export async function checkHost(
  domain: string,
  sending: Sending,
  dns: Dns,
): Promise<{ result: SpfResult | 'none'; included: string[] }> {
  const course: Course = { lookups: 0, voids: 0, included: [] };
  return { result: await evaluate(domain, sending, dns, course), included: course.included };
}

async function evaluate(domain: string, sending: Sending, dns: Dns, course: Course): Promise<SpfResult | 'none'> {
  const text = await findSpf(domain, dns);
  if (text === undefined) return 'none';
  const { directives, redirect } = parseSpf(text);
  for (const { result, mechanism } of directives) {
    if (await matches(mechanism, domain, sending, dns, course)) return result;
  }
  if (redirect === undefined) return 'neutral';
  countLookup(course);
  return follow(redirect, domain, sending, dns, course);
}

async function matches(
  mechanism: Mechanism,
  domain: string,
  sending: Sending,
  dns: Dns,
  course: Course,
): Promise<boolean> {
  if (mechanism.name === 'all') return true;
  if ('network' in mechanism) return contains(mechanism.network, mechanism.bits, sending.ip);
  countLookup(course);
  // "This mechanism SHOULD NOT be published": receivers may leave it out, and so does this.
  if (mechanism.name === 'ptr') return false;
  if (mechanism.name === 'include') return (await follow(mechanism.domain, domain, sending, dns, course)) === 'pass';
  const target = expandMacros(mechanism.domain ?? domain, domain, sending);
  if (!isName(target)) return false;
  if (!('ipv4_bits' in mechanism)) return recordsOf(await dns.addresses(target)).some(isIPv4);
  const found = mechanism.name === 'a' ? await dns.addresses(target) : await addressesOfExchangers(target, dns);
  countVoid(found, course);
  const bits = isIPv4(sending.ip) ? mechanism.ipv4_bits : mechanism.ipv6_bits;
  return recordsOf(found).some((address) => contains(address, bits, sending.ip));
}

/** Evaluates the record of another domain, for `include` or `redirect`, which need one there. */
async function follow(to: string, domain: string, sending: Sending, dns: Dns, course: Course): Promise<SpfResult> {
  const target = expandMacros(to, domain, sending).toLowerCase();
  course.included.push(target);
  const result = isName(target) ? await evaluate(target, sending, dns, course) : 'none';
  if (result !== 'none') return result;
  throw new RecordFault(
    `refers to ${target}, which has no SPF record. Receivers refuse the whole record: remove or correct the term.`,
  );
}

async function addressesOfExchangers(name: string, dns: Dns): Promise<Answer<string>> {
  const exchangers = await dns.exchangers(name);
  if (!Array.isArray(exchangers)) return exchangers;
  if (exchangers.length > most_exchangers) {
    throw new RecordFault(
      `names \`mx\` of ${name}, which has more than ${most_exchangers} mail servers. Name their networks instead.`,
    );
  }
  const found = await Promise.all(exchangers.filter(isName).map((exchanger) => dns.addresses(exchanger)));
  return found.flatMap(recordsOf);
}

function countLookup(course: Course): void {
  course.lookups++;
  if (course.lookups > most_lookups) {
    throw new RecordFault(
      `needs more than ${most_lookups} DNS look-ups, and receivers refuse it. Remove \`include\` terms that are not used, or name networks instead.`,
    );
  }
}

function countVoid(found: Answer<string>, course: Course): void {
  if (recordsOf(found).length === 0) course.voids++;
  if (course.voids > most_voids) {
    throw new RecordFault(
      `names more than ${most_voids} hosts that do not exist, and receivers refuse it. Remove them.`,
    );
  }
}

const recordsOf = <Each>(answer: Answer<Each>): Each[] => (Array.isArray(answer) ? answer : []);

function contains(network: string, bits: number, ip: string): boolean {
  if (isIP(network) !== isIP(ip)) return false;
  const family = isIPv4(network) ? 'ipv4' : 'ipv6';
  const list = new BlockList();
  list.addSubnet(network, bits, family);
  return list.check(ip, family);
}
