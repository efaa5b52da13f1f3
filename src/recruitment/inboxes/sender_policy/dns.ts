/** Queries DNS within the limits of one look-up of a sender's policy. */
import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';

/** The name servers did not answer, or not in time. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

/** The records of a name. `no_name`: neither it nor a name below it exists. */
export type Answer<Record> = Record[] | 'no_record' | 'no_name';

export interface Dns {
  /** Each TXT record in one piece. @throws NoAnswer */
  texts(name: string): Promise<Answer<string>>;
  /** IPv4 and IPv6. @throws NoAnswer */
  addresses(name: string): Promise<Answer<string>>;
  /** Host names, the most preferred first. @throws NoAnswer */
  exchangers(name: string): Promise<Answer<string>>;
}

const query_timeout_ms = 1_500;
const query_tries = 2;
const most_name_characters = 253;

/** Asks each name once. @param signal ends every query */
export function openDns(nameServers: readonly string[] | undefined, signal: AbortSignal): Dns {
  const known = new Map<string, Promise<Answer<never>>>();
  const once = <Record>(key: string, query: (resolver: Resolver) => Promise<Record[]>): Promise<Answer<Record>> => {
    const answer = known.get(key) ?? ask(query, nameServers, signal);
    known.set(key, answer as Promise<Answer<never>>);
    return answer;
  };
  return {
    texts: (name) =>
      once(`TXT ${name}`, async (resolver) => (await resolver.resolveTxt(name)).map((parts) => parts.join(''))),
    async addresses(name) {
      if (isIP(name)) return [name];
      const [ipv4, ipv6] = await Promise.all([
        once(`A ${name}`, (resolver) => resolver.resolve4(name)),
        once(`AAAA ${name}`, (resolver) => resolver.resolve6(name)),
      ]);
      if (!Array.isArray(ipv4) && !Array.isArray(ipv6)) return ipv4;
      return [ipv4, ipv6].flatMap((each) => (Array.isArray(each) ? each : []));
    },
    exchangers: (name) =>
      once(`MX ${name}`, async (resolver) => {
        const records = await resolver.resolveMx(name);
        return records.sort((one, other) => one.priority - other.priority).map(({ exchange }) => exchange);
      }),
  };
}

/** A resolver to each query: a malformed answer fails whatever else its resolver is waiting for. */
async function ask<Record>(
  query: (resolver: Resolver) => Promise<Record[]>,
  nameServers: readonly string[] | undefined,
  signal: AbortSignal,
): Promise<Answer<Record>> {
  if (signal.aborted) throw new NoAnswer();
  const resolver = new Resolver({ timeout: query_timeout_ms, tries: query_tries });
  if (nameServers) resolver.setServers(nameServers);
  const cancel = () => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    const records = await query(resolver);
    return records.length > 0 ? records : 'no_record';
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOTFOUND' || code === 'EBADNAME') return 'no_name';
    if (code === 'ENODATA') return 'no_record';
    throw new NoAnswer(undefined, { cause: error });
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

/** A name that can be asked for: labels of at most 63 characters, 253 in all. */
export const isName = (name: string): boolean =>
  name.length <= most_name_characters && /^(?:[a-z0-9_-]{1,63}\.)+[a-z0-9_-]{1,63}\.?$/i.test(name);
