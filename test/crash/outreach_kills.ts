/**
 * Kills workers and Postgres at random points while emails are sent, a quarter of the kills between the end of the data and its answer, and
 * counts at the other end: nobody is sent an email twice, and nobody is forgotten who was not told `unknown`.
 */
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql } from 'sql-template-tag';
import { violations } from '../../src/commands/audit.ts';
import { createOrganization } from '../../src/core/access/organization.ts';
import { register, runTick } from '../../src/core/jobs/schedule.ts';
import { openDatabase, run } from '../../src/core/postgres/database.ts';
import { type Store, transaction } from '../../src/core/postgres/transaction.ts';
import { schedules, writeEvents } from '../../src/products.ts';
import { type Json, services, sql } from '../harness.ts';
import { type Process, startProcess } from '../processes.ts';
import { authority_certificate, startMailbox } from '../recruitment/mailbox.ts';
import { openSender, step } from '../recruitment/outreach/outreach.ts';
import { type SentFolder, startSentFolder } from '../recruitment/outreach/sent_folder.ts';
import { startSink } from '../recruitment/outreach/sink.ts';
import { Crew } from './crew.ts';
import { startMortalPostgres } from './mortal_postgres.ts';

export interface Plan {
  sends: number;
  kills: number;
  inboxes: number;
  workers: number;
  /** One kill in so many is one of Postgres. */
  postgres_every: number;
  /** From 0 to less than 1. */
  random: () => number;
  progress?: (line: string) => void;
}

export interface Outcome {
  kills: { worker: number; answer: number; postgres: number };
  accepted: number;
  sent: number;
  unknown: number;
  /** Emails that were accepted twice. */
  twice: string[];
  /** Emails that were not accepted although they are `sent`. */
  false_sent: number;
  /** Sequences whose first email is neither sent nor unknown. */
  forgotten: number;
  wrong: unknown[];
}

export async function killWhileSending(plan: Plan): Promise<Outcome> {
  const postgres = await startMortalPostgres();
  const database = openDatabase(postgres.url, { size: 4, name: 'rail test' });
  const store: Store = { database, writeEvents };
  const sink = await startSink();
  // A mailbox for each inbox: to search one that has the emails of all would take longer the more there are.
  const folders = await Promise.all(Array.from({ length: plan.inboxes }, () => startSentFolder()));
  const { smtp } = await startMailbox(sink.handlers);
  const { id: organization_id } = await createOrganization(database, {
    name: 'Killed',
    owner_email: 'owner@example.com',
  });
  const query = <Row extends object = Json>(statement: Sql): Promise<Row[]> => run<Row>(database, statement);
  const place = { store, services, query };
  const addresses = Array.from({ length: plan.sends }, (_, nth) => `reader@blog${nth}.com`);
  const { inbox_ids } = await openSender(place, organization_id, {
    mailbox: { smtp, imap: (folders[0] as SentFolder).imap },
    ...{
      inboxes: plan.inboxes,
      prospects: plan.sends,
      address: (nth: number) => addresses[nth] as string,
      steps: [step(), step({ delay_days: 30 })],
    },
  });

  const imaps = inbox_ids.map((id, nth) => ({ id, imap: folders[nth]?.imap }));
  await query(sql`
    update recruitment.inbox i set imap = g.imap - 'password'
    from json_to_recordset(${JSON.stringify(imaps)}::json) as g (id text, imap jsonb) where i.id = g.id`);
  const folderOf = (text: string): SentFolder =>
    folders[Number(/^From:.*<grace(\d+)@/im.exec(text)?.[1])] as SentFolder;

  const holding = new Holding(plan.random, ({ id }) => sink.sessions.get(id)?.destroyed !== false);
  for (const to of addresses) {
    sink.script.set(to, {
      async end(session) {
        const how = await holding.hold(session);
        if (how === 'lost') throw new Error('The connection was lost before it was accepted.');
      },
      async accepted(session) {
        // Half of the servers keep a copy, so that some of what was in doubt is found.
        const text = sink.acceptedBy(to).at(-1)?.text ?? '';
        if (holding.isHeld(session) && plan.random() < 0.5) folderOf(text).put(text);
        await holding.released(session);
      },
    });
  }
  const certificates = join(await mkdtemp(join(tmpdir(), 'rail-authority-')), 'authority.pem');
  await writeFile(certificates, authority_certificate);
  // The host of the service is what a worker says in EHLO: an email that is held tells whose it is.
  const hosts = Array.from({ length: plan.workers }, (_, nth) => `worker${nth}.localhost`);
  const start = (nth: number): Promise<Process> =>
    startProcess('worker', postgres.url, { NODE_EXTRA_CA_CERTS: certificates, BASE_URL: `http://${hosts[nth]}` });
  const workers = await Crew.start(plan.workers, start);
  await register(store, schedules);
  const wake = () =>
    transaction(store, { organization_id: null, request_id: null }, (tx) =>
      runTick(tx, 'recruitment/send_due', new Date().toISOString()),
    ).catch(() => {});
  const counts = async (): Promise<{ left: number; sending: number }> =>
    (
      await place.query<{ left: number; sending: number }>(sql`
        select count(*) filter (where s.state = 'waiting')::integer as left,
          (select count(*)::integer from recruitment.message m where m.state = 'sending') as sending
        from recruitment.sequence s`)
    )[0] as { left: number; sending: number };

  const kills = { worker: 0, answer: 0, postgres: 0 };
  const per_kill = plan.sends / (plan.kills + 1);
  await wake();
  plan.progress?.('begun');
  for (let nth = 1; nth <= plan.kills; nth++) {
    await until(() => sink.accepted.length >= nth * per_kill * 0.9, wake);
    if (nth % plan.postgres_every === 0) {
      // A worker that loses Postgres while it starts ends, for its supervisor to start it again.
      await workers.allRun();
      await postgres.kill();
      await postgres.reopen();
      postgres.gate.cut();
      kills.postgres++;
      plan.progress?.(`${nth} of ${plan.kills} kills, ${sink.accepted.length} of ${plan.sends} emails accepted`);
      continue;
    }
    const host = kills.answer < nth / 4 ? await holding.begin() : undefined;
    if (host !== undefined) {
      await workers.kill(hosts.indexOf(host));
      // The server notices that the connections are gone.
      await sleep(50);
      kills.answer++;
    } else {
      await sleep(plan.random() * 50);
      await workers.kill(await workers.oneThatRuns(plan.random));
      kills.worker++;
    }
    holding.end();
    plan.progress?.(`${nth} of ${plan.kills} kills, ${sink.accepted.length} of ${plan.sends} emails accepted`);
  }
  await until(async () => {
    const { left, sending } = await counts().catch(() => ({ left: 1, sending: 1 }));
    return left === 0 && sending === 0;
  }, wake);
  plan.progress?.('all emails have an outcome');
  await workers.end();
  // Closes sockets of killed processes that are still open at the other end, and would keep the server.
  for (const socket of sink.sessions.values()) socket.destroy();
  return check(place.query, sink.accepted, kills, database);
}

async function check(
  query: <Row extends object>(statement: Sql) => Promise<Row[]>,
  accepted: { to: string; message_id: string }[],
  kills: Outcome['kills'],
  database: ReturnType<typeof openDatabase>,
): Promise<Outcome> {
  const times = new Map<string, number>();
  for (const { message_id } of accepted) times.set(message_id, (times.get(message_id) ?? 0) + 1);
  const messages = await query<{ rfc_message_id: string; state: string }>(sql`
    select rfc_message_id, state from recruitment.message where direction = 'outbound'`);
  const forgotten = await query(sql`
    select from recruitment.sequence s where not exists (
      select from recruitment.message m where m.organization_id = s.organization_id and m.sequence_id = s.id and m.state in ('sent', 'unknown'))`);
  const of = (state: string) => messages.filter((one) => one.state === state);
  const client = await database.connect();
  const wrong = (await Array.fromAsync(violations(client))).flat();
  client.release(true);
  await database.end();
  return {
    ...{ kills, accepted: accepted.length, sent: of('sent').length, unknown: of('unknown').length },
    twice: [...times].filter(([, count]) => count > 1).map(([id]) => id),
    false_sent: of('sent').filter(({ rfc_message_id }) => !times.has(rfc_message_id)).length,
    forgotten: forgotten.length,
    wrong,
  };
}

/** Waits, and wakes the queues as the sweep does, only more often. */
async function until(holds: () => boolean | Promise<boolean>, wake: () => Promise<unknown>): Promise<void> {
  for (let nth = 0; !(await holds()); nth++) {
    await sleep(20);
    if (nth % 100 === 99) await wake();
  }
}

type Session = { id: string; hostNameAppearsAs: string | false };

/** Nothing is sent where nothing waits. */
const most_held_ms = 10_000;

/** Holds emails between the end of their data and the answer. */
class Holding {
  readonly #random: () => number;
  readonly #isGone: (session: Session) => boolean;
  readonly #held = new Set<Session>();
  #release: PromiseWithResolvers<void> | undefined;
  #first = Promise.withResolvers<string>();

  constructor(random: () => number, isGone: (session: Session) => boolean) {
    this.#random = random;
    this.#isGone = isGone;
  }

  /** From now on emails are held. @returns who sends the first one; undefined when none came for a while */
  async begin(): Promise<string | undefined> {
    this.#release = Promise.withResolvers<void>();
    this.#first = Promise.withResolvers<string>();
    return Promise.race([this.#first.promise, sleep(most_held_ms, undefined)]);
  }

  end(): void {
    this.#release?.resolve();
    this.#release = undefined;
  }

  isHeld(session: Session): boolean {
    return this.#held.has(session);
  }

  /** Half of those that are held are accepted before they are. */
  async hold(session: Session): Promise<'accepted' | 'lost'> {
    if (!this.#release) return 'accepted';
    this.#held.add(session);
    if (this.#random() < 0.5) return 'accepted';
    const released = this.#release.promise;
    this.#first.resolve(`${session.hostNameAppearsAs}`);
    await released;
    this.#held.delete(session);
    return this.#isGone(session) ? 'lost' : 'accepted';
  }

  async released(session: Session): Promise<void> {
    if (!this.#held.delete(session) || !this.#release) return;
    this.#first.resolve(`${session.hostNameAppearsAs}`);
    await this.#release.promise;
  }
}
