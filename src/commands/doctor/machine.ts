/** This machine: its disk, its name servers, and whether it reaches the service at its URL. */
import { Resolver } from 'node:dns/promises';
import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { isIP } from 'node:net';
import type { Config } from '../../config.ts';
import { named, size } from '../../core/doctor/amounts.ts';
import { type AnyCheck, check, error, ok, warning } from '../../core/doctor/check.ts';
import { baseUrlOf } from '../../service.ts';

const low_share = 0.1;
const lowest_share = 0.03;
const answer_ms = 3_000;

export const machineChecks = (config: Config): AnyCheck[] => [diskOf(config), nameServersOf(config), baseUrl(config)];

const diskOf = ({ RAIL_DATA_DIR: folder, DATABASE_URL }: Config): AnyCheck =>
  check({
    name: 'machine/disk',
    read: async () => (existsSync(folder) ? statfs(folder) : undefined),
    assess(found) {
      const whose = DATABASE_URL ? ' That of Postgres is not known here.' : '';
      if (!found) return ok(`${folder} is not there.${whose}`);
      const free = found.bavail / Math.max(found.blocks, 1);
      const text = `${size(found.bavail * found.bsize)} of ${size(found.blocks * found.bsize)} are free at ${folder}.${whose}`;
      if (free < lowest_share) return error(text, 'Free space, or take a larger disk.');
      return free < low_share ? warning(text, 'Free space, or take a larger disk.') : ok(text);
    },
  });

/** Every answer does, also that there is no such name. */
const nameServersOf = ({ RAIL_WEBHOOK_NAME_SERVERS, BASE_URL }: Config): AnyCheck =>
  check({
    name: 'machine/name_servers',
    async read() {
      const servers = RAIL_WEBHOOK_NAME_SERVERS ?? new Resolver().getServers();
      const { hostname } = new URL(BASE_URL ?? 'https://example.com');
      const name = isIP(hostname.replace(/^\[|\]$/g, '')) || !hostname.includes('.') ? 'example.com' : hostname;
      const asked = servers.map(async (server) => ({ server, failure: await failureOf(server, name) }));
      return Promise.all(asked);
    },
    assess(found) {
      const all = named(found.map(({ server }) => server));
      const failed = found.flatMap(({ server, failure }) => (failure ? [`${server} (${failure})`] : []));
      if (failed.length === 0) return ok(`Name servers answer: ${all}.`);
      const text = `Name servers do not answer: ${named(failed)}.`;
      const remedy =
        'Webhooks, inboxes and pages are found by them: check RAIL_WEBHOOK_NAME_SERVERS, or /etc/resolv.conf.';
      return failed.length === found.length ? error(text, remedy) : warning(text, remedy);
    },
  });

const unanswered = ['ETIMEOUT', 'ECONNREFUSED', 'ESERVFAIL', 'EREFUSED', 'ECANCELLED', 'EBADRESP'];

async function failureOf(server: string, name: string): Promise<string | undefined> {
  const resolver = new Resolver({ timeout: 1_000, tries: 2 });
  resolver.setServers([server]);
  try {
    await resolver.resolve4(name);
    return undefined;
  } catch (failure) {
    const { code } = failure as { code: string };
    return unanswered.includes(code) ? code : undefined;
  }
}

const baseUrl = (config: Config): AnyCheck =>
  check({
    name: 'machine/base_url',
    async read() {
      if (!config.BASE_URL) return undefined;
      try {
        const { status } = await fetch(`${baseUrlOf(config)}/readyz`, {
          signal: AbortSignal.timeout(answer_ms),
        });
        return { status };
      } catch (failure) {
        const { message, cause } = failure as Error & { cause?: Error };
        return { failure: cause?.message || message };
      }
    },
    assess(found) {
      if (!found) return ok('BASE_URL is not set.');
      if (found.status === 200) return ok(`${config.BASE_URL} answers, and is ready.`);
      const said = found.status === undefined ? found.failure : `it answers ${found.status} at /readyz`;
      return warning(
        `${config.BASE_URL} cannot be used from here: ${said}.`,
        "Check BASE_URL, the proxy, and that 'npx --no rail api' runs.",
      );
    },
  });
