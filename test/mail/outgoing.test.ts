import { Writable } from 'node:stream';
import { pino } from 'pino';
import type { SMTPServerOptions } from 'smtp-server';
import t, { type Test } from 'tap';
import { readConfig } from '../../src/config.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { type Draft, queueMail } from '../../src/mail/outgoing.ts';
import { openServices } from '../../src/service.ts';
import { encryption_key, eventually, type Json, sql, startRail, startWorker } from '../harness.ts';
import { stablePort } from '../ports.ts';
import { decodeWords, startSmtpServer } from './smtp.ts';

const rail = await startRail({ worker: false });
const { organization_id } = await rail.organization();
const draft: Draft = {
  organization_id,
  recipient: 'ada@acme.example.com',
  subject: 'A subject',
  text: 'A text.\n',
};

/** A worker by these settings, for the duration of a test. Gives what it logs. */
async function workWith(t: Test, settings: NodeJS.ProcessEnv): Promise<Json[]> {
  const logged: Json[] = [];
  const lines = new Writable({
    write(line, _, done) {
      logged.push(JSON.parse(line));
      done();
    },
  });
  const log = pino({ level: 'trace' }, lines);
  const config = readConfig({ RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'), ...settings });
  const services = await openServices(config, log, rail.store.database);
  const worker = startWorker({ url: rail.url, store: rail.store, services, concurrency: 2, log });
  await worker.ready;
  t.teardown(() => worker.stop());
  return logged;
}

const queue = (fields: Partial<Draft> = {}): Promise<string> =>
  transaction(rail.store, { organization_id: null, request_id: null }, (tx) => queueMail(tx, { ...draft, ...fields }));

const rowOf = async (id: string): Promise<Json> =>
  (
    await rail.query(sql`select recipient, sent_at, attempts, error from core.outgoing_mail where id = ${id}`)
  )[0] as Json;

async function until(id: string, fits: (mail: Json) => boolean): Promise<Json> {
  let mail: Json = {};
  const isThere = async () => {
    mail = await rowOf(id);
    return fits(mail);
  };
  await eventually(isThere, 'the mail to get there');
  return mail;
}

const jobs = (): Promise<Json[]> =>
  rail.query(
    sql`select j.attempts, j.last_error from graphile_worker.jobs j where j.task_identifier = 'core/send_mail'`,
  );

const noJobs = () => eventually(async () => (await jobs()).length === 0, 'the job to end');

/** Refuses the first, and accepts the others once `seen` has settled. */
const refuseFirst = ({ responseCode, message }: { responseCode: number; message: string }, seen?: Promise<void>) => {
  let is_first = true;
  return (_: unknown, __: unknown, callback: (error?: Error) => void) => {
    if (!is_first) return void (seen ?? Promise.resolve()).then(() => callback());
    is_first = false;
    callback(Object.assign(new Error(message), { responseCode }));
  };
};

t.test('a mail arrives as it was written', async (t) => {
  const smtp = await startSmtpServer();
  await workWith(t, { SMTP_URL: `smtp://127.0.0.1:${smtp.port}`, MAIL_FROM: 'Rail of Acme <rail@acme.example.com>' });
  const text = '.\nA dot alone, and one in front:\n.hidden\nFrom here: grüße, 🚂\n';
  const id = await queue({ subject: 'Größe matters: 🚂', text });
  const [mail] = await smtp.until(1);
  t.match(mail, { from: 'rail@acme.example.com', to: ['ada@acme.example.com'], text, secure: false });
  t.match(mail?.headers, {
    from: 'Rail of Acme <rail@acme.example.com>',
    to: 'ada@acme.example.com',
    'message-id': `<${id}@acme.example.com>`,
    'auto-submitted': 'auto-generated',
    'content-type': /^text\/plain; charset=utf-8/,
  });
  t.equal(decodeWords(mail?.headers.subject ?? ''), 'Größe matters: 🚂');
  t.match(await until(id, ({ sent_at }) => sent_at !== null), { attempts: 1, error: null, sent_at: /^20/ });
  await noJobs();

  await t.test('and the job of one that was sent sends nothing', async (t) => {
    await rail.query(
      sql`select graphile_worker.add_job('core/send_mail', ${JSON.stringify({ organization_id, id })}::json) is null as lost`,
    );
    await noJobs();
    t.equal(smtp.received.length, 1);
  });

  await t.test('one whose outcome was lost is sent again, and can be known as the same', async (t) => {
    await rail.query(sql`update core.outgoing_mail set sent_at = null where id = ${id}`);
    await rail.query(
      sql`select graphile_worker.add_job('core/send_mail', ${JSON.stringify({ organization_id, id })}::json) is null as lost`,
    );
    const [first, again] = await smtp.until(2);
    t.equal(again?.headers['message-id'], first?.headers['message-id']);
    t.equal(again?.headers.date, first?.headers.date);
    t.match(await until(id, ({ sent_at }) => sent_at !== null), { attempts: 2 });
  });
});

t.test('a mail has its attachment, and is the same when it is sent twice', async (t) => {
  const smtp = await startSmtpServer();
  await workWith(t, { SMTP_URL: `smtp://127.0.0.1:${smtp.port}` });
  const content = Buffer.from(Array.from({ length: 5000 }, (_, nth) => nth % 256));
  const id = await queue({ attachment: { name: 'statement-2026-00001.pdf', media_type: 'application/pdf', content } });
  const [mail] = await smtp.until(1);
  t.match(mail?.headers['content-type'], /^multipart\/mixed/);
  t.match(mail?.text, /Content-Type: application\/pdf; name=statement-2026-00001\.pdf/);
  t.match(mail?.text, /A text\./);
  const [, encoded = ''] = /filename=statement-2026-00001\.pdf\n\n([A-Za-z0-9+/=\n]+)/.exec(mail?.text ?? '') ?? [];
  t.ok(Buffer.from(encoded, 'base64').equals(content));
  await until(id, ({ sent_at }) => sent_at !== null);
  await rail.query(sql`update core.outgoing_mail set sent_at = null where id = ${id}`);
  await rail.query(
    sql`select graphile_worker.add_job('core/send_mail', ${JSON.stringify({ organization_id, id })}::json) is null as lost`,
  );
  const [first, again] = await smtp.until(2);
  t.equal(again?.text, first?.text);
  t.same(again?.headers, first?.headers);
});

t.test('a mail of a transaction that fails is never sent', async (t) => {
  const smtp = await startSmtpServer();
  await workWith(t, { SMTP_URL: `smtp://127.0.0.1:${smtp.port}` });
  const failing = transaction(rail.store, { organization_id: null, request_id: null }, async (tx) => {
    await queueMail(tx, { ...draft, subject: 'Never' });
    throw new Error('on purpose');
  });
  await t.rejects(failing, { message: 'on purpose' });
  await queue({ subject: 'Sent' });
  await smtp.until(1);
  await noJobs();
  t.same(
    smtp.received.map(({ headers }) => headers.subject),
    ['Sent'],
  );
});

t.test('the sender is rail@ and the host of BASE_URL, unless MAIL_FROM names another', async (t) => {
  const smtp = await startSmtpServer();
  const SMTP_URL = `smtp://127.0.0.1:${smtp.port}`;
  await workWith(t, { SMTP_URL, BASE_URL: 'https://rail.acme.example.com/' });
  const id = await queue();
  const [mail] = await smtp.until(1);
  t.equal(mail?.headers.from, 'Rail <rail@rail.acme.example.com>');
  t.equal(mail?.headers['message-id'], `<${id}@rail.acme.example.com>`);
});

t.test('a server that is down gets the mail when it is back', async (t) => {
  const port = await stablePort();
  await workWith(t, { SMTP_URL: `smtp://127.0.0.1:${port}` });
  const id = await queue();
  t.match(await until(id, ({ error }) => error !== null), { sent_at: null, error: /ECONNREFUSED/ });
  const back = await startSmtpServer({ port });
  await back.until(1);
  const sent = await until(id, ({ sent_at }) => sent_at !== null);
  t.equal(sent.error, null);
  t.ok(sent.attempts > 1);
  await noJobs();
  t.equal(back.received.length, 1);
});

t.test('what the server refuses for now is tried again', async (t) => {
  const busy = { responseCode: 451, message: 'Greylisted, ada@acme.example.com' };
  const refusals: [string, (seen: Promise<void>) => SMTPServerOptions][] = [
    ['the recipient', (seen) => ({ onRcptTo: refuseFirst(busy, seen) as SMTPServerOptions['onRcptTo'] })],
    [
      'the sender, even for good',
      (seen) => ({
        onMailFrom: refuseFirst({ ...busy, responseCode: 550 }, seen) as SMTPServerOptions['onMailFrom'],
      }),
    ],
  ];
  for (const [what, optionsOf] of refusals) {
    await t.test(what, async (t) => {
      // Until the refusal was seen in the row, the next attempt has no answer.
      const seen = Promise.withResolvers<void>();
      const smtp = await startSmtpServer(optionsOf(seen.promise));
      const logged = await workWith(t, { SMTP_URL: `smtp://127.0.0.1:${smtp.port}` });
      const id = await queue();
      t.match(await until(id, ({ error }) => error !== null), {
        sent_at: null,
        error: /with: (451|550) Greylisted/,
      });
      seen.resolve();
      await smtp.until(1);
      t.match(await until(id, ({ sent_at }) => sent_at !== null), { attempts: 2, error: null });
      await noJobs();
      t.notMatch(JSON.stringify(logged), 'ada@acme.example.com', 'and the log does not say who it was for');
    });
  }
});

t.test('what the server refuses for good is not tried again, and is logged', async (t) => {
  const refusals: [string, SMTPServerOptions][] = [
    [
      'the recipient',
      { onRcptTo: refuseFirst({ responseCode: 550, message: 'No such user' }) as SMTPServerOptions['onRcptTo'] },
    ],
    [
      'the message',
      {
        onData(stream, _, callback) {
          stream.resume().on('end', () => callback(Object.assign(new Error('No such user'), { responseCode: 554 })));
        },
      },
    ],
  ];
  for (const [what, options] of refusals) {
    await t.test(what, async (t) => {
      const smtp = await startSmtpServer(options);
      const logged = await workWith(t, { SMTP_URL: `smtp://127.0.0.1:${smtp.port}` });
      const id = await queue();
      t.match(await until(id, ({ error }) => error !== null), {
        sent_at: null,
        attempts: 1,
        error: /55[04] .*No such user/,
      });
      await noJobs();
      t.equal((await rowOf(id)).attempts, 1);
      t.match(
        logged.filter(({ mail_id }) => mail_id === id),
        [{ level: 50, organization_id }],
      );
      t.equal(smtp.received.length, 0);
    });
  }
});

t.test('the login of SMTP_URL is used, and is in no log, row or job', async (t) => {
  const secrets = ['s3cr3t@word', 's3cr3t%40word', 'postmaster', Buffer.from('s3cr3t@word').toString('base64')];
  let password = 'another';
  const smtp = await startSmtpServer({
    authOptional: false,
    allowInsecureAuth: true,
    onAuth({ username, password: given }, _, callback) {
      if (username === 'postmaster' && given === password) return callback(null, { user: username });
      callback(Object.assign(new Error(`Not ${username} with ${given}`), { responseCode: 535 }));
    },
  });
  const logged = await workWith(t, { SMTP_URL: `smtp://postmaster:s3cr3t%40word@127.0.0.1:${smtp.port}` });
  const id = await queue();
  const refused = await until(id, ({ error }) => error !== null);
  t.match(refused, { sent_at: null, error: 'The SMTP server did not accept the login in SMTP_URL.' });
  await eventually(async () => (await jobs())[0]?.last_error, 'the job to have failed');
  const seen = JSON.stringify([refused, await jobs(), logged]);
  for (const secret of secrets) t.notOk(seen.includes(secret));

  password = 's3cr3t@word';
  const [mail] = await smtp.until(1);
  t.equal(mail?.user, 'postmaster');
  await noJobs();
  for (const secret of secrets) t.notOk(JSON.stringify([await rowOf(id), logged]).includes(secret));
});

t.test('TLS: from the start, or by STARTTLS, and only with a certificate that is accepted', async (t) => {
  const servers: [string, SMTPServerOptions][] = [
    ['smtps', { secure: true }],
    ['smtp', { disabledCommands: [] }],
  ];
  for (const [protocol, options] of servers) {
    await t.test(protocol, async (t) => {
      const smtp = await startSmtpServer(options);
      const SMTP_URL = `${protocol}://127.0.0.1:${smtp.port}`;
      await t.test('one that is not is an error', async (t) => {
        await workWith(t, { SMTP_URL });
        const id = await queue();
        t.match(await until(id, ({ error }) => error !== null), { sent_at: null, error: /certificate/ });
        await rail.query(sql`delete from core.outgoing_mail where id = ${id}`);
        await eventually(async () => (await jobs()).length === 0, 'the job of a mail that is gone to end');
        t.equal(smtp.received.length, 0);
      });
      await workWith(t, { SMTP_URL: `${SMTP_URL}?tls.rejectUnauthorized=false` });
      await queue();
      t.match(await smtp.until(1), [{ secure: true }]);
      await noJobs();
    });
  }
});

t.test('without SMTP_URL a mail is logged and kept, and not sent', async (t) => {
  const logged = await workWith(t, {});
  const id = await queue();
  await noJobs();
  t.match(await rowOf(id), { sent_at: null, attempts: 0, error: 'SMTP_URL is not set.' });
  t.match(
    logged.filter(({ mail }) => mail?.id === id),
    [{ level: 40, mail: draft }],
  );
});

t.test('a mail to nobody is logged and kept', async (t) => {
  const smtp = await startSmtpServer();
  const logged = await workWith(t, { SMTP_URL: `smtp://127.0.0.1:${smtp.port}` });
  const id = await queue({ recipient: null });
  await noJobs();
  t.match(await rowOf(id), {
    sent_at: null,
    attempts: 0,
    error: 'The organization has no owner with an email address.',
  });
  t.match(
    logged.filter(({ mail }) => mail?.id === id),
    [{ mail: { subject: draft.subject, text: draft.text } }],
  );
  t.equal(smtp.received.length, 0);
});

t.test('nothing of a mail can begin another header, recipient or mail', async (t) => {
  const recipients = [
    'a@b.example.com\r\nBcc: eve@e.example.com',
    'a@b.example.com, eve@e.example.com',
    'A <a@b.example.com>',
    'a',
  ];
  for (const recipient of recipients) {
    await t.rejects(queue({ recipient }), { message: /outgoing_mail_recipient_is_one_address/ }, recipient);
  }
  for (const subject of ['A\r\nBcc: eve@e.example.com', 'A\nB', '']) {
    await t.rejects(queue({ subject }), { message: /outgoing_mail_subject_is_one_line/ }, subject);
  }
  const senders = [
    'a@b.example.com\r\nBcc: eve@e.example.com',
    'A\n <a@b.example.com>',
    'a@b.example.com, c@d.example.com',
    'A',
  ];
  for (const MAIL_FROM of senders)
    t.throws(() => readConfig({ MAIL_FROM }), { message: /MAIL_FROM: must be one address/ });
  for (const MAIL_FROM of ['a@b.example.com', 'A <a@b.example.com>']) t.match(readConfig({ MAIL_FROM }), { MAIL_FROM });
  t.throws(() => readConfig({ SMTP_URL: 'http://user:hidden@a.example.com' }), { message: /^(?!.*hidden).*SMTP_URL/ });
});
