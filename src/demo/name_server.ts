/** The name server of the demo: its own names are this machine, all others are asked of the system's name servers. */
import { Resolver } from 'node:dns/promises';
import type { AddressInfo } from 'node:net';
import { demo_sites } from './sites.ts';
import { web_hosts } from './web.ts';

const mail_host = 'mail-rail-demo.com';
const own_hosts = new Set([...web_hosts, mail_host]);
const mail_domains = new Set(demo_sites.map(({ host }) => host));

export interface DemoNames {
  name_servers: string[];
  close(): Promise<void>;
}

export async function startDemoNames(): Promise<DemoNames> {
  const { default: dns, Packet } = await import('dns2');
  const { A, AAAA, MX, TXT } = Packet.TYPE;
  const others = new Resolver({ timeout: 2_000, tries: 1 });

  /** The answers to a question; an empty list where a name has no such records. */
  async function answersTo(name: string, type: number): Promise<object[]> {
    const record = { name, type, class: Packet.CLASS.IN, ttl: 1 };
    if (own_hosts.has(name)) {
      if (type === A) return [{ ...record, address: '127.0.0.1' }];
      return type === MX && mail_domains.has(name) ? [{ ...record, exchange: mail_host, priority: 10 }] : [];
    }
    if (type === A) return (await others.resolve4(name)).map((address) => ({ ...record, address }));
    if (type === AAAA) return (await others.resolve6(name)).map((address) => ({ ...record, address }));
    if (type === MX) return (await others.resolveMx(name)).map((exchanger) => ({ ...record, ...exchanger }));
    return type === TXT ? (await others.resolveTxt(name)).map((data) => ({ ...record, data })) : [];
  }

  const server = dns.createServer({
    udp: true,
    async handle(request, send) {
      const response = Packet.createResponseFromRequest(request);
      const [question] = request.questions;
      if (question) {
        const { name, type } = question as unknown as { name: string; type: number };
        response.answers.push(...((await answersTo(name.toLowerCase(), type).catch(() => [])) as never[]));
      }
      send(response);
    },
  });
  await server.listen({ udp: { port: 0, address: '127.0.0.1' } });
  const { port } = (server.addresses() as { udp: AddressInfo }).udp;
  return { name_servers: [`127.0.0.1:${port}`], close: async () => void (await server.close()) };
}
