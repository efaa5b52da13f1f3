/** Checks that the SPF record of a domain lets the provider of an inbox send, as far as DNS shows. */
import { getDomain } from 'tldts';
import { type Dns, NoAnswer } from './dns.ts';
import { providerOf } from './providers.ts';
import { checkHost } from './spf.ts';
import type { Sending } from './spf_macro.ts';
import { parseSpf, spfTexts } from './spf_record.ts';
import { type Verdict, verdictOf } from './verdict.ts';

/** An address of a block for documentation (RFC 5737): a server that no record means. */
const unlisted_address = '192.0.2.1';
const most_networks = 40;

/** @param host of the SMTP server, through which the domain's emails go */
export function checkSpf(domain: string, host: string, dns: Dns): Promise<Verdict> {
  const record = async () => (await spfTexts(domain, dns))[0] ?? null;
  return verdictOf(
    `SPF record of ${domain}`,
    async () => ({ record: await record(), ...(await check(domain, host, dns)) }),
    record,
  );
}

async function check(domain: string, host: string, dns: Dns): Promise<Omit<Verdict, 'record'>> {
  const provider = providerOf(host);
  const term = provider ? `include:${provider.spf[0]}` : undefined;
  const { result, included } = await checkHost(domain, sendingFrom(unlisted_address, domain), dns);
  if (result === 'none') return { status: 'missing', detail: missing(domain, term) };
  if (result === 'pass') {
    const detail = `The SPF record of ${domain} lets every server send (\`+all\`), so that it proves nothing. End it with \`~all\` or \`-all\`.`;
    return { status: 'invalid', detail };
  }
  const lists = (provider?.spf ?? []).map((name) => letsNetworksSend(domain, name, included, dns));
  const let_by = await Promise.all(lists);
  if (let_by.includes(true)) return { status: 'pass', detail: lets(domain, host) };
  if (let_by.includes(false)) {
    return {
      status: 'invalid',
      detail: `The SPF record of ${domain} does not let ${host} send. Add \`${term}\` to it.`,
    };
  }
  const addresses = await dns.addresses(host);
  const is_let = Array.isArray(addresses) && (await letsOneSend(domain, addresses, dns));
  const own = included.find((name) => getDomain(name) === getDomain(host));
  if (is_let || own) return { status: 'pass', detail: lets(domain, host) };
  return { status: 'unknown', detail: unsure(domain, host) };
}

const sendingFrom = (ip: string, domain: string): Sending => ({ ip, sender: `postmaster@${domain}` });

/** @param name of a provider's record, whose networks must all pass. Undefined where DNS names none. */
async function letsNetworksSend(
  domain: string,
  name: string,
  included: string[],
  dns: Dns,
): Promise<boolean | undefined> {
  if (included.includes(name)) return true;
  const networks = await networksOf(name, dns);
  for (const ip of networks) if (!(await letsOneSend(domain, [ip], dns))) return false;
  return networks.length > 0 ? true : undefined;
}

async function letsOneSend(domain: string, addresses: string[], dns: Dns): Promise<boolean> {
  for (const ip of addresses) {
    const { result } = await checkHost(domain, sendingFrom(ip, domain), dns);
    if (result === 'pass') return true;
  }
  return false;
}

/** An address of each network that the SPF record of a provider names, itself or by `include`. Empty where DNS does not say. */
async function networksOf(domain: string, dns: Dns, depth = 0): Promise<string[]> {
  const [record] = await spfTexts(domain, dns).catch((error) =>
    error instanceof NoAnswer ? [] : Promise.reject(error),
  );
  if (record === undefined || depth > 3) return [];
  const { directives, redirect } = parseSpf(record);
  const found: string[] = [];
  for (const { mechanism } of directives) {
    if (mechanism.name === 'ip4' || mechanism.name === 'ip6') found.push(mechanism.network);
    if (mechanism.name === 'include') found.push(...(await networksOf(mechanism.domain, dns, depth + 1)));
  }
  if (redirect) found.push(...(await networksOf(redirect, dns, depth + 1)));
  return found.slice(0, most_networks);
}

const lets = (domain: string, host: string) => `The SPF record of ${domain} lets ${host} send.`;

const missing = (domain: string, term: string | undefined) =>
  term
    ? `${domain} has no SPF record. Add the TXT record \`v=spf1 ${term} ~all\`.`
    : `${domain} has no SPF record. Add a TXT record that names the servers of your email provider, as the provider documents it: \`v=spf1 … ~all\`.`;

const unsure = (domain: string, host: string) =>
  `The SPF record of ${domain} does not name the addresses of ${host}. If your email provider sends from other addresses, verify that the record names those.`;
