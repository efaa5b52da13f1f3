import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import tls from 'node:tls';
import { createTransport } from 'nodemailer';
import type { Sql } from 'sql-template-tag';
import sql from 'sql-template-tag';
import { createOrganization } from '../../src/core/access/organization.ts';
import { createVault } from '../../src/core/encryption/vault.ts';
import type { TaskContext } from '../../src/core/jobs/worker_context.ts';
import { openDatabase, run } from '../../src/core/postgres/database.ts';
import { type Store, transaction } from '../../src/core/postgres/transaction.ts';
import { writeEvents } from '../../src/products.ts';
import { scheduleSequences } from '../../src/recruitment/campaigns/schedule_sequences.ts';
import { composeMail } from '../../src/recruitment/composing/mail.ts';
import { wakeQueues } from '../../src/recruitment/sending/queues.ts';
import { openSender, step } from '../recruitment/outreach/outreach.ts';
import type { Bench, Sample } from './harness.ts';
import { startNode, startPostgres } from './processes.ts';

const default_sends = 2_000;
const inboxes = 50;
const minute_s = 60;

/** Durable sends of a worker into a sink on loopback, beside a bare nodemailer loop; and the scheduling of sequences. */
export const outreach: Bench = {
  name: 'outreach',
  doc: `Durable sends of a worker from ${inboxes} inboxes into a sink on loopback, ${default_sends.toLocaleString('en')} emails (--size) a round, beside a bare nodemailer loop; and sequences scheduled.`,
  defaults: { rounds: 3, seconds: 5 },
  async setup(stack, progress, size = default_sends) {
    const url = await startPostgres(stack);
    const folder = await mkdtemp(join(tmpdir(), 'rail-bench-'));
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    const key = randomBytes(32);
    const sink = await startNode(stack, 'smtp_sink.ts', [folder], {}, { path: '/' });
    const { port } = (await (await fetch(sink.url)).json()) as { port: number };
    const authority = join(folder, 'authority.pem');
    tls.setDefaultCACertificates([...tls.getCACertificates('default'), await readFile(authority, 'utf8')]);
    const environment = {
      ...{ DATABASE_URL: url, RAIL_ENCRYPTION_KEY: key.toString('base64'), BASE_URL: 'http://127.0.0.1' },
      ...{ RAIL_WEBHOOK_ALLOW_PRIVATE: '1', NODE_EXTRA_CA_CERTS: authority },
    };
    await startNode(stack, '../../src/rail.js', ['worker'], environment, { line: 'worker ready' });
    const database = openDatabase(url, { size: 4, name: 'rail bench' });
    stack.defer(() => database.end());
    const store: Store = { database, writeEvents };
    const services = { vault: createVault([key]) };
    const server = { host: 'localhost', security: 'tls', username: 'grace', password: 'none', port };
    const query = <Row extends object>(statement: Sql): Promise<Row[]> => run<Row>(database, statement);
    const open = async () => {
      const { id } = await createOrganization(database, { name: 'Bench', owner_email: 'owner@example.com' });
      progress(`outreach: ${size} prospects`);
      return openSender({ store, services, query } as never, id, {
        ...{ mailbox: { smtp: server, imap: server }, inboxes, prospects: size },
        ...{ address: (nth: number) => `reader@blog${nth}.com`, steps: [step(), step({ delay_days: 3 })] },
      });
    };

    async function send(): Promise<Sample> {
      const { organization_id } = await open();
      const began = performance.now();
      await transaction(store, { organization_id: null, request_id: null }, wakeQueues);
      for (let sent = 0; sent < size; await sleep(50)) {
        const [counted] = await query<{ sent: number }>(
          sql`select count(*)::integer as sent from recruitment.message where organization_id = ${organization_id} and state = 'sent'`,
        );
        sent = counted?.sent ?? 0;
      }
      return { sends_per_min: (size / (performance.now() - began)) * 1_000 * minute_s };
    }

    async function bare(): Promise<Sample> {
      const auth = { user: 'grace', pass: 'none' };
      const transport = createTransport({
        host: 'localhost',
        port,
        secure: true,
        auth,
        pool: true,
        maxConnections: inboxes,
        maxMessages: 10_000,
      });
      const began = performance.now();
      await Promise.all(
        Array.from({ length: size }, async (_, nth) => {
          const to = `reader@blog${nth}.com`;
          const raw = await composeMail({
            ...{
              from: { name: 'Grace', email: 'grace@acme.example.com' },
              to,
              reply_to: null,
              subject: 'Hello',
              text: 'Hello',
              html: '<p>Hello</p>',
            },
            ...{
              message_id: `<fms_${String(nth).padStart(26, '0')}@acme.example.com>`,
              date: new Date(),
              footer: null,
            },
          });
          await transport.sendMail({ envelope: { from: 'grace@acme.example.com', to }, raw });
        }),
      );
      transport.close();
      return { sends_per_min: (size / (performance.now() - began)) * 1_000 * minute_s };
    }

    async function schedule(): Promise<Sample> {
      const { organization_id, campaign_id } = await open();
      await query(sql`
        update recruitment.sequence set inbox_id = null, due_at = null, email_address_id = null, address_hmac = null, domain_hmac = null, company_hmac = null
        where organization_id = ${organization_id}`);
      const began = performance.now();
      const context = { store, services, stopping: new AbortController().signal } as unknown as TaskContext;
      await scheduleSequences({ organization_id, campaign_id }, context);
      const seconds = (performance.now() - began) / 1_000;
      // They are due at once: what the worker sent of them meanwhile would count as the next round's.
      await query(
        sql`update recruitment.campaign set state = 'paused', pause_causes = array['user'] where id = ${campaign_id}`,
      );
      return { sequences_per_min: (size / seconds) * minute_s };
    }

    return {
      postgres_url: url,
      figures: {
        sends_per_min: {
          unit: '/min',
          better: 'higher',
          doc: 'emails that were accepted and written down; the aim is 20,000 on 2 cores, at least 10,000',
        },
        sequences_per_min: {
          unit: '/min',
          better: 'higher',
          doc: 'sequences that got an address, an inbox and a time; the aim is 200,000, at least 100,000',
        },
      },
      notes: [
        `The sink, Postgres and the worker share the machine. All inboxes have no gap, and the organization no webhooks.`,
      ],
      sides: [
        { name: 'bare', doc: `nodemailer with ${inboxes} connections in one process, without a database`, run: bare },
        { name: 'send', doc: 'a worker, three transactions an email', baseline: 'bare', run: send },
        { name: 'schedule', doc: 'scheduleSequences', run: schedule },
      ],
    };
  },
};
