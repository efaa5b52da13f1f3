import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { eventually, type Json, sql, startRail } from '../harness.ts';
import { startProcess } from '../processes.ts';
import { mail } from '../recruitment/outreach/mailed.ts';
import { answerTo, authority_cert, openImapServer, openUnread } from '../recruitment/outreach/read_inbox.ts';
import { effort } from '../runner/effort.ts';

const answers_of_round = 6;
const rail = await startRail({ worker: false, durability: 'durable' });

t.test(`tells every answer once while workers are killed ${effort.reading_kills} times amid reading`, async (t) => {
  const server = await openImapServer();
  const settings = { NODE_EXTRA_CA_CERTS: await trustedFile(), BASE_URL: 'http://127.0.0.1' };
  const outreach = await openUnread(rail, server);
  const written: string[] = [];
  const deliver = async () => {
    const round = await Promise.all(Array.from({ length: answers_of_round }, () => mail(rail, outreach)));
    for (const to of round) server.deliver(outreach.user, answerTo(to, 'Yes, please send me the details.'));
    written.push(...round.map(({ prospect_id }) => prospect_id));
  };
  const tell = () =>
    rail.query<Json>(sql`
      select t.prospect_id, count(*)::int as count from recruitment.message t
      where t.inbox_id = ${outreach.inbox_id} and t.direction = 'inbound' group by 1`);

  for (let kill = 0; kill < effort.reading_kills; kill++) {
    await deliver();
    // Beyond the mail at which the worker before was lost: one that is lost three times is set aside, and read again after a minute.
    const until = server.fetched + 2 + Math.floor(Math.random() * (answers_of_round - 1));
    const worker = await startProcess('worker', rail.url, settings);
    await eventually(() => server.fetched >= until, 'some of the answers to be fetched');
    await worker.end('SIGKILL');
    server.faults.drops_fetches = kill % 2;
  }
  await deliver();
  const last = await startProcess('worker', rail.url, settings);
  const told = () =>
    outreach.receiver.received.filter(({ body }) => body.type === 'reply.received').map(({ body }) => body);
  const ids = () => new Set(told().map(({ data }) => data.prospect_id));
  await eventually(() => ids().size === written.length, 'every answer');
  await last.end('SIGTERM');
  t.same(new Set((await tell()).map(({ count }) => count)), new Set([1]), 'each answer is kept once');
  t.equal(new Set(told().map(({ id }) => id)).size, written.length, 'each answer is told by one event');
  const [cursor] = await rail.query<{ last_uid: number }>(
    sql`select t.last_uid from recruitment.inbox_folder t where t.inbox_id = ${outreach.inbox_id} and t.folder = 'INBOX'`,
  );
  t.equal(cursor?.last_uid, written.length);
});

/** A file with the certificate of the test's authority, for processes. */
async function trustedFile(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'rail-authority-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const file = join(directory, 'authority.pem');
  await writeFile(file, authority_cert);
  return file;
}
