/** Looks up who may send for a domain: SPF, DKIM and DMARC. */
import { checkDkim } from './dkim.ts';
import { checkDmarc } from './dmarc.ts';
import { openDns } from './dns.ts';
import { selectorsOf } from './providers.ts';
import { checkSpf } from './sender_spf.ts';
import type { Verdict } from './verdict.ts';

export interface SenderPolicy {
  spf: Verdict;
  dkim: Verdict;
  dmarc: Verdict;
}

/** The limit for all look-ups together. */
const timeout_ms = 5_000;
/** The time for which an answer is cached, so that polling does not query DNS each time. */
const kept_ms = 30_000;
const most_kept = 1_000;
const kept = new Map<string, { policy: Promise<SenderPolicy>; until: number }>();

/**
 * @param host of the SMTP server that sends
 * @param nameServers as `Resolver.setServers` takes them; those of /etc/resolv.conf when left out
 */
export function lookUpSenderPolicy(
  domain: string,
  host: string,
  nameServers: readonly string[] | undefined,
): Promise<SenderPolicy> {
  const key = [domain, host, ...(nameServers ?? [])].join(' ');
  const found = kept.get(key);
  if (found && performance.now() < found.until) return found.policy;
  kept.delete(key);
  const [oldest] = kept.keys();
  if (oldest !== undefined && kept.size >= most_kept) kept.delete(oldest);
  const policy = lookUp(domain, host, nameServers);
  kept.set(key, { policy, until: performance.now() + kept_ms });
  policy.catch(() => kept.delete(key));
  return policy;
}

async function lookUp(domain: string, host: string, nameServers: readonly string[] | undefined): Promise<SenderPolicy> {
  const dns = openDns(nameServers, AbortSignal.timeout(timeout_ms));
  const [spf, dkim, dmarc] = await Promise.all([
    checkSpf(domain, host, dns),
    checkDkim(domain, selectorsOf(host), dns),
    checkDmarc(domain, dns),
  ]);
  return { spf, dkim, dmarc };
}
