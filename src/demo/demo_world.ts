import tls from 'node:tls';
import type { Services } from '../core/resource/services.ts';
import { demo_mailbox, startDemoMailbox } from './mailbox.ts';
import { startDemoNames } from './name_server.ts';
import { startDemoWeb } from './web.ts';

/** The ports that are used where they are free, so that a connected inbox finds its servers again after a restart. */
const wanted_ports = { web: 4080, smtp: 4465, imap: 4993 };

export interface DemoWorld {
  /** The fields of `demo.json` about it. */
  fields: Record<string, string>;
  /** The services of a process that is part of it. */
  services: Services;
  close(): Promise<void>;
}

/**
 * Starts a mail server, a search engine, websites and their name server, all on loopback, and trusts the mail server's certificates in this process.
 * @throws Error where the packages for development are not installed
 */
export async function startDemoWorld(services: Services): Promise<DemoWorld> {
  const [web, mailbox, names] = await Promise.all([
    startDemoWeb(wanted_ports.web),
    startDemoMailbox(wanted_ports),
    startDemoNames(),
  ]).catch((error) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND' && error.code !== 'MODULE_NOT_FOUND') throw error;
    throw new Error('RAIL_DEMO_MAIL=1 needs the packages for development: run npm ci without --omit=dev.', {
      cause: error,
    });
  });
  tls.setDefaultCACertificates([...tls.getCACertificates('default'), mailbox.authority]);
  return {
    fields: {
      website_url: `http://acme-rail-demo.com:${web.port}/`,
      inbox_email: demo_mailbox.email,
      mail_username: demo_mailbox.username,
      mail_password: demo_mailbox.password,
      smtp_port: String(mailbox.smtp_port),
      imap_port: String(mailbox.imap_port),
      mail_authority: mailbox.authority,
    },
    services: {
      ...services,
      is_demo: true,
      name_servers: names.name_servers,
      search_credentials: { ...services.search_credentials, searxng: { url: web.searxng_url } },
      visit_interval_ms: 0,
    },
    close: async () => void (await Promise.all([web.close(), mailbox.close(), names.close()])),
  };
}
