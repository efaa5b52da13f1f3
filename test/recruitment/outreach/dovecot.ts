import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { eventually } from '../../harness.ts';
import { stablePort } from '../../ports.ts';
import { identity, password } from './read_inbox.ts';

export interface Dovecot {
  port: number;
  /** The INBOX or another folder of a user, for other programs to deliver into. */
  openMaildir(user: string, folder?: 'Junk'): Promise<string>;
  /** Puts a mail into a folder of a user, as a delivery agent does. */
  deliver(user: string, source: string, folder?: 'Junk'): Promise<void>;
  /** Forgets all UIDs: the folder gets another UIDVALIDITY. */
  renumber(user: string): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

const nobody = { uid: 65_534, gid: 65_534 };
/** The owner of mail. */
export const mail_user = userInfo().uid === 0 ? nobody : userInfo();

/** Dovecot never reads mail as root: there it is nobody. */
export async function openFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true });
  await chmod(path, 0o777);
}

/** Returns whether Debian's dovecot-imapd is installed. */
export const hasDovecot = (): boolean => succeeds('dovecot', '--version');

export function succeeds(program: string, option: string): boolean {
  return spawnSync(program, [option], { stdio: 'ignore', env: withSbin() }).status === 0;
}

export const withSbin = (): NodeJS.ProcessEnv => ({ ...process.env, PATH: `${process.env.PATH}:/usr/sbin` });

/** Dovecot on loopback, with folders of files that end with the test. It runs as the user of the test, as root or not. */
export async function startDovecot(): Promise<Dovecot> {
  const directory = await mkdtemp(join(tmpdir(), 'rail-dovecot-'));
  await chmod(directory, 0o755);
  await openFolder(join(directory, 'mail'));
  const port = await stablePort();
  const file = (name: string) => join(directory, name);
  await writeFile(file('key.pem'), identity.key, { mode: 0o600 });
  await writeFile(file('cert.pem'), identity.cert);
  await writeFile(file('dovecot.conf'), configuration(directory, port));
  let ended: Promise<unknown> = Promise.resolve();
  let stop = () => {};
  const own: Dovecot = {
    port,
    async openMaildir(user, folder) {
      const home = join(directory, 'mail', user);
      const maildir = folder ? join(home, `.${folder}`) : home;
      await openFolder(home);
      for (const part of ['', 'new', 'cur', 'tmp']) await openFolder(join(maildir, part));
      return maildir;
    },
    async deliver(user, source, folder) {
      const maildir = await own.openMaildir(user, folder);
      await writeFile(join(maildir, 'new', `${Date.now()}.${Math.random().toString(36).slice(2)}.localhost`), source);
    },
    async renumber(user) {
      const maildir = join(directory, 'mail', user);
      for (const name of ['dovecot-uidlist', 'dovecot.index', 'dovecot.index.log', 'dovecot.index.cache']) {
        await rm(join(maildir, name), { force: true });
      }
      await rm(join(maildir, 'dovecot-uidvalidity'), { force: true });
    },
    async start() {
      const child = spawn('dovecot', ['-F', '-c', file('dovecot.conf')], { stdio: 'ignore', env: withSbin() });
      ended = once(child, 'exit');
      stop = () => void child.kill('SIGTERM');
      await eventually(() => isListening(port), 'Dovecot to listen');
    },
    async stop() {
      stop();
      await ended;
    },
  };
  t.teardown(async () => {
    await own.stop();
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  });
  await own.start();
  return own;
}

function configuration(directory: string, port: number): string {
  const { username, uid: own_uid } = userInfo();
  const { uid, gid } = mail_user;
  const internal = own_uid === 0 ? [] : [`default_internal_user = ${username}`, `default_login_user = ${username}`];
  return [
    ...[`base_dir = ${directory}/run`, `state_dir = ${directory}/state`, `log_path = ${directory}/log`, ...internal],
    ...['protocols = imap', 'listen = 127.0.0.1', 'ssl = required', `ssl_cert = <${directory}/cert.pem`],
    ...[`ssl_key = <${directory}/key.pem`, `mail_location = maildir:${directory}/mail/%u`],
    ...['first_valid_uid = 0', 'first_valid_gid = 0', `passdb {\n  driver = static\n  args = password=${password}\n}`],
    `userdb {\n  driver = static\n  args = uid=${uid} gid=${gid} home=${directory}/mail/%u\n}`,
    'namespace inbox {\n  inbox = yes\n  mailbox Junk {\n    auto = create\n    special_use = \\Junk\n  }\n}',
    `service imap-login {\n  chroot =\n  inet_listener imap {\n    port = 0\n  }\n  inet_listener imaps {\n    port = ${port}\n    ssl = yes\n  }\n}`,
    'service anvil {\n  chroot =\n}',
    'service stats {\n  chroot =\n}',
    '',
  ].join('\n');
}

export async function isListening(port: number): Promise<boolean> {
  const { connect } = await import('node:net');
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
