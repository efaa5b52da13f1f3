/** A mail that never ends to be classified, and one that kills whoever classifies it: nobody else waits for them, and the next mail is read. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { mail } from './mailed.ts';
import { answered, answerTo, authority_cert, openImapServer, openUnread, type ReadOutreach } from './read_inbox.ts';
import { readPoison } from './reader_of_poison.ts';

const rail = await startRail({ worker: false });
const server = await openImapServer();

const setAside = ({ inbox_id }: ReadOutreach) =>
  rail.query<Json>(sql`select a.uid, a.message_id from recruitment.mail_set_aside a where a.inbox_id = ${inbox_id}`);
const inbound = (prospect_id: string) =>
  rail.query<Json>(sql`
    select t.needs_review, t.confidence, t.body_text from recruitment.message t
    where t.prospect_id = ${prospect_id} and t.direction = 'inbound'`);
const untilRead = (prospect_id: string) =>
  eventually(async () => (await inbound(prospect_id)).length === 1, 'the mail to be read');

t.test('sets aside a mail that takes too long to classify, while the process answers others', async (t) => {
  const outreach = await openUnread(rail, server);
  const poison = await answered(rail, outreach, 'a never-ending story');
  const next = await answered(rail, outreach, 'What do you pay?');
  const { inbox_id, caller } = outreach;
  const { organization_id } = caller;
  const stop = new AbortController();
  const ended = readPoison({ organization_id, inbox_id }, rail.store, stop.signal);
  await eventually(async () => server.fetched > 0, 'the mails to be fetched');
  let answers = 0;
  while ((await setAside(outreach)).length === 0) {
    await caller.get('/v1/programs');
    answers += 1;
    await sleep(50);
  }
  t.ok(answers > 0, `${answers} requests were answered meanwhile`);
  await untilRead(next.prospect_id);
  t.match(await inbound(poison.prospect_id), [{ needs_review: true, confidence: 0, body_text: /never-ending story/ }]);
  t.match(await inbound(next.prospect_id), [{ needs_review: false }]);
  stop.abort();
  await ended;
});

t.test('sets aside a mail that killed a process while it classified it, for the third time', async (t) => {
  const outreach = await openUnread(rail, server);
  const first = await answered(rail, outreach, 'What do you pay?');
  const to = await mail(rail, outreach);
  const uid = server.deliver(outreach.user, answerTo(to, 'a killing joke'));
  const next = await answered(rail, outreach, 'What do you pay?');
  const certificate = join(t.testdir(), 'authority.pem');
  await writeFile(certificate, authority_cert);
  const read = () =>
    spawn(
      process.execPath,
      [join(import.meta.dirname, 'reader_of_poison.ts'), rail.url, outreach.caller.organization_id, outreach.inbox_id],
      { stdio: 'ignore', env: { ...process.env, NODE_EXTRA_CA_CERTS: certificate } },
    );
  for (const tries of [1, 3]) {
    if (tries === 3)
      await rail.query(sql`update recruitment.inbox_folder set tries = 2 where inbox_id = ${outreach.inbox_id}`);
    const [, signal] = await once(read(), 'exit');
    t.equal(signal, 'SIGKILL');
    const counted = await rail.query<Json>(
      sql`select f.begun_uid, f.tries from recruitment.inbox_folder f where f.inbox_id = ${outreach.inbox_id} and f.folder = 'INBOX'`,
    );
    t.match(counted, [{ begun_uid: uid, tries }], 'it counts as tried');
  }
  t.equal((await inbound(first.prospect_id)).length, 1, 'the one before was read once');
  t.equal((await inbound(next.prospect_id)).length, 0);
  const child = read();
  await untilRead(next.prospect_id);
  t.match(await setAside(outreach), [{ uid }]);
  child.kill('SIGKILL');
});
