/** An inbox whose IMAP server is on loopback, and mails that answer what it sent. */
import tls from 'node:tls';
import t from 'tap';
import { createAuthority } from '../../../src/demo/authority.ts';
import { eventually, type Json, type Rail, sql } from '../../harness.ts';
import { type ImapServer, startImapServer } from './imap_server.ts';
import { type Mailed, mail, type Outreach, openOutreach } from './mailed.ts';

export const password = 'app-password';
const authority = createAuthority('Rail test mailbox authority');
tls.setDefaultCACertificates([...tls.getCACertificates('default'), authority.cert]);
export const authority_cert = authority.cert;
export const identity = authority.issue({ name: 'localhost' });

/** An IMAP server that ends with the tests of the file. */
export async function openImapServer(): Promise<ImapServer> {
  const server = await startImapServer({ ...identity, password });
  t.teardown(() => server.close());
  return server;
}

export interface ReadOutreach extends Outreach {
  server: ImapServer;
  /** The user of the login at the IMAP server. */
  user: string;
}

let nth = 0;

/** An organization whose inbox is read by a worker. */
export async function openReadOutreach(rail: Rail, server: ImapServer): Promise<ReadOutreach> {
  const outreach = await openUnread(rail, server);
  await eventually(() => server.logins.includes(outreach.user), 'a login');
  return outreach;
}

/** An organization whose inbox is read as soon as there is a worker. */
export async function openUnread(rail: Rail, server: ImapServer): Promise<ReadOutreach> {
  const outreach = await openOutreach(rail);
  const user = `grace${++nth}`;
  await connectTo(rail, outreach, server, user);
  return { ...outreach, server, user };
}

export async function connectTo(
  rail: Rail,
  { inbox_id }: Outreach,
  server: { port: number },
  user: string,
): Promise<void> {
  const imap = JSON.stringify({ host: 'localhost', port: server.port, security: 'tls', username: user });
  const secrets = JSON.stringify({ smtp_password: password, imap_password: password });
  await rail.query(sql`
    update recruitment.inbox set imap = ${imap}::jsonb, secrets = ${rail.services.vault.encrypt(secrets, inbox_id)} where id = ${inbox_id}`);
}

/** The source of a mail: fields and text. */
export function source(fields: Json, text: string): string {
  const given = {
    From: 'Ada <ada@example.com>',
    To: 'grace@acme.example.com',
    Date: new Date().toUTCString(),
    Subject: 'Re: Hello',
    ...fields,
  };
  const lines = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]));
  return `${lines.join('\r\n')}\r\n\r\n${text.replace(/\r?\n/g, '\r\n')}\r\n`;
}

let nth_id = 0;
export const newMessageId = (): string => `<answer-${++nth_id}@their.example.com>`;

/** A mail that answers what a prospect was sent. */
export const answerTo = ({ message_id, email }: Mailed & { email: string }, text: string, fields: Json = {}): string =>
  source(
    { From: email, 'Message-ID': newMessageId(), 'In-Reply-To': `<${message_id}@acme.example.com>`, ...fields },
    text,
  );

/** A new prospect who was written to, whose answer lies in the inbox. */
export async function answered(rail: Rail, outreach: ReadOutreach, text: string, fields: Json = {}) {
  const to = await mail(rail, outreach);
  outreach.server.deliver(outreach.user, answerTo(to, text, fields));
  return to;
}
