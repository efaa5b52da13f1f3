import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { eventually } from '../../harness.ts';
import { stablePort } from '../../ports.ts';
import { isListening, mail_user, openFolder, succeeds, withSbin } from './dovecot.ts';
import { identity, password } from './read_inbox.ts';

export interface Exim {
  port: number;
  /** Accepts what it asked to send again later. */
  endGreylisting(): Promise<void>;
  /** Returns its log of emails. */
  log(): Promise<string>;
}

/** Returns whether Debian's exim4-daemon-light is installed. */
export const hasExim = (): boolean => succeeds('exim4', '-bV');

/**
 * Exim on loopback, for one user. It refuses whoever is called `unknown`, asks to send again later to `greylisted`, accepts and returns what is for
 * `returned`, and keeps all else. What comes for acme.example.com goes into `maildir`.
 */
export async function startExim(maildir: string): Promise<Exim> {
  const directory = await mkdtemp(join(tmpdir(), 'rail-exim-'));
  const file = (name: string) => join(directory, name);
  for (const path of [directory, ...['spool', 'log', 'kept'].map(file)]) await openFolder(path);
  const { uid, gid } = mail_user;
  for (const [name, text] of Object.entries({ 'key.pem': identity.key, 'cert.pem': identity.cert })) {
    await writeFile(file(name), text, { mode: 0o600 });
    await chown(file(name), uid, gid);
  }
  const port = await stablePort();
  await writeFile(file('exim.conf'), configuration(directory, port, maildir));
  await chmod(file('exim.conf'), 0o644);
  const as_user = userInfo().uid === 0 ? { uid, gid } : {};
  const child = spawn('exim4', ['-C', file('exim.conf'), '-bdf'], {
    ...{ stdio: 'ignore', env: withSbin(), cwd: directory },
    ...as_user,
  });
  const ended = once(child, 'exit');
  t.teardown(async () => {
    child.kill('SIGTERM');
    await ended;
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  });
  const log = () => readFile(file('log/main'), 'utf8').catch(() => '');
  await eventually(() => isListening(port), 'Exim to listen');
  return { port, log, endGreylisting: () => writeFile(file('passed'), '') };
}

function configuration(directory: string, port: number, maildir: string): string {
  const folder = 'maildir_format\ncreate_directory\ndirectory_mode = 0777\nmode = 0666';
  return [
    ...[`exim_user = ${mail_user.uid}`, `exim_group = ${mail_user.gid}`, 'deliver_drop_privilege'],
    ...['primary_hostname = mail.acme.example.com', 'qualify_domain = acme.example.com', 'keep_environment ='],
    ...['local_interfaces = 127.0.0.1', `daemon_smtp_ports = ${port}`, `tls_on_connect_ports = ${port}`],
    ...[`spool_directory = ${directory}/spool`, `log_file_path = ${directory}/log/%s`, 'write_rejectlog = false'],
    ...['tls_advertise_hosts = *', `tls_certificate = ${directory}/cert.pem`, `tls_privatekey = ${directory}/key.pem`],
    ...['host_lookup =', 'rfc1413_query_timeout = 0s', 'acl_smtp_rcpt = rcpt', 'acl_smtp_data = accept', 'begin acl'],
    ...['rcpt:', 'deny message = 5.1.1 Unknown user\nlocal_parts = unknown'],
    `defer message = 4.7.1 Greylisted, try again later\nlocal_parts = greylisted\ncondition = \${if exists{${directory}/passed}{no}{yes}}`,
    ...['accept authenticated = *', 'deny', 'begin routers'],
    'own:\ndriver = accept\ndomains = acme.example.com\ntransport = mailbox',
    'returned:\ndriver = redirect\nlocal_parts = returned\nallow_fail\ndata = :fail: 550 5.1.1 The email account does not exist',
    ...['others:\ndriver = accept\ntransport = kept', 'begin transports'],
    `mailbox:\ndriver = appendfile\ndirectory = ${maildir}\n${folder}\nreturn_path_add`,
    `kept:\ndriver = appendfile\ndirectory = ${directory}/kept\n${folder}`,
    ...['begin authenticators', 'plain:\ndriver = plaintext\npublic_name = PLAIN\nserver_prompts = :'],
    ...[`server_condition = \${if eq{$auth3}{${password}}}`, 'server_set_id = $auth2', ''],
  ].join('\n');
}
