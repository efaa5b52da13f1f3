/** An IMAP server on loopback whose faults a test chooses: what it numbers anew, when it drops connections, and whether it knows IDLE. */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import tls from 'node:tls';

export interface StoredMail {
  uid: number;
  source: Buffer;
  arrived_at: Date;
}

export interface Folder {
  uid_validity: number;
  next_uid: number;
  mails: StoredMail[];
}

export interface ImapFaults {
  /** Refuses every login. */
  refuses_logins: boolean;
  /** The answers to the logins of users, before they are checked; after BYE it closes the connection. */
  login_answers: Map<string, string>;
  /** Parts that it leaves out of its answers: UIDNEXT, UIDVALIDITY, INTERNALDATE, RFC822.SIZE; LIST: special uses. */
  omits: Set<string>;
  /** Answers to FETCH from the last mail on, and says then what flags each has. */
  fetches_backwards: boolean;
  /** Takes no APPEND before this settles. */
  holds_appends: Promise<void> | undefined;
  /** A folder that it names and does not open. */
  unselectable: string | undefined;
  /** Refuses to search a folder that is empty. */
  refuses_empty_searches: boolean;
  /** Drops the connection in the middle of the body of the next so many mails that are fetched. */
  drops_fetches: number;
  /** Drops the connection in the middle of the body of each mail that holds this. */
  drops_at: string | undefined;
  /** Says at once that the connection is closed. */
  refuses_connections: boolean;
  /** Does not say that it knows IDLE. */
  lacks_idle: boolean;
  /** Says of each IDLE at once that it is over. */
  ends_idle: boolean;
  /** Answers with whole mails where a part is asked for. */
  ignores_partial: boolean;
  /** Gives all mails but the first empty where several are asked for. */
  empties_others: boolean;
  /** Answers nobody who is logged in before this settles. */
  holds_answers: Promise<void> | undefined;
}

/** The server, as its tests see it. */
export interface ImapServer {
  port: number;
  faults: ImapFaults;
  /** User names of the logins that were accepted. */
  logins: string[];
  /** Logins that were refused. */
  refused: number;
  /** Mails that were fetched. */
  fetched: number;
  /** Connections that wait in IDLE now. */
  idling(): number;
  connections(): number;
  folder(user: string, name?: string): Folder;
  /** IDLEs that were begun. */
  idles: number;
  /** APPENDs that were begun. */
  appends: number;
  /** Puts a mail into a folder, and tells whoever waits for it. @returns its UID */
  deliver(user: string, source: string | Buffer, folder?: string, arrived_at?: Date): number;
  /** Numbers the mails of a folder anew, from `first_uid` on; seen at the next SELECT. */
  renumber(user: string, folder?: string, first_uid?: number): void;
  /** Drops all connections. */
  drop(): void;
  close(): Promise<void>;
}

export interface ImapServerOptions {
  key: string;
  cert: string;
  password: string;
  port?: number;
}

interface Session {
  socket: Socket;
  user: string;
  selected: string | undefined;
  idle_tag: string | undefined;
  /** The number of mails that the client knows. */
  known: number;
}

export async function startImapServer({ key, cert, password, port = 0 }: ImapServerOptions): Promise<ImapServer> {
  const users = new Map<string, Map<string, Folder>>();
  const sessions = new Set<Session>();
  const faults: ImapFaults = {
    ...{ refuses_logins: false, drops_fetches: 0, drops_at: undefined, refuses_connections: false },
    ...{ lacks_idle: false, ignores_partial: false, empties_others: false, holds_answers: undefined },
    ...{ login_answers: new Map(), omits: new Set(), fetches_backwards: false, holds_appends: undefined },
    ...{ unselectable: undefined, refuses_empty_searches: false, ends_idle: false },
  };
  const foldersOf = (user: string) => {
    const folders = users.get(user) ?? new Map(['INBOX', 'Junk', 'Sent'].map((name) => [name, newFolder()]));
    users.set(user, folders);
    return folders;
  };
  const folder: ImapServer['folder'] = (user, name = 'INBOX') => {
    const found = foldersOf(user).get(name);
    if (!found) throw new Error(`There is no folder ${name}.`);
    return found;
  };
  const server = tls.createServer({ key, cert }, (socket) => {
    if (faults.refuses_connections) return socket.destroy();
    const session: Session = { socket, user: '', selected: undefined, idle_tag: undefined, known: 0 };
    sessions.add(session);
    socket.on('close', () => sessions.delete(session));
    socket.on('error', () => socket.destroy());
    socket.write('* OK [CAPABILITY IMAP4rev1 ID AUTH=XOAUTH2] ready\r\n');
    readCommands(socket, (line, literals) => {
      if (session.user === '' || !faults.holds_answers) return answer(session, line, literals);
      void faults.holds_answers.then(() => answer(session, line, literals));
    });
  });
  const own: ImapServer = {
    ...{ port: 0, faults, logins: [], refused: 0, fetched: 0, idles: 0, appends: 0, folder },
    idling: () => [...sessions].filter(({ idle_tag }) => idle_tag !== undefined).length,
    connections: () => sessions.size,
    deliver(user, source, name = 'INBOX', arrived_at = new Date()) {
      const into = folder(user, name);
      const uid = into.next_uid++;
      into.mails.push({ uid, source: Buffer.from(source), arrived_at });
      for (const session of sessions) {
        if (session.user === user && session.selected === name && session.idle_tag !== undefined) tellNews(session);
      }
      return uid;
    },
    renumber(user, name = 'INBOX', first_uid = 1) {
      const into = folder(user, name);
      into.uid_validity += 1;
      for (const [index, mail] of into.mails.entries()) mail.uid = first_uid + index;
      into.next_uid = first_uid + into.mails.length;
    },
    drop() {
      for (const { socket } of sessions) socket.destroy();
    },
    close() {
      own.drop();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };

  function tellNews(session: Session): void {
    const { mails } = folder(session.user, session.selected);
    if (mails.length === session.known) return;
    session.known = mails.length;
    session.socket.write(`* ${mails.length} EXISTS\r\n`);
  }

  function answer(session: Session, line: string, literals: Buffer[]): void {
    const { socket } = session;
    if (session.idle_tag !== undefined) {
      if (/^done$/i.test(line)) socket.write(`${session.idle_tag} OK done\r\n`);
      session.idle_tag = undefined;
      return;
    }
    const [, tag = '*', name = '', rest = ''] = /^(\S+) (UID \S+|\S+) ?(.*)$/is.exec(line) ?? [];
    const ok = (...untagged: string[]) =>
      socket.write([...untagged.map((each) => `* ${each}`), `${tag} OK done`].map((each) => `${each}\r\n`).join(''));
    const no = (why: string) => socket.write(`${tag} NO ${why}\r\n`);
    const args = [...rest.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(
      ([, quoted, bare]) => quoted?.replace(/\\(.)/g, '$1') ?? bare ?? '',
    );
    switch (name.toUpperCase()) {
      case 'CAPABILITY':
        return void ok(`CAPABILITY IMAP4rev1 ID AUTH=XOAUTH2 SPECIAL-USE${faults.lacks_idle ? '' : ' IDLE'}`);
      case 'AUTHENTICATE':
      case 'LOGIN': {
        const [named = '', token] = Buffer.from(args[1] ?? '', 'base64')
          .toString()
          .split('\x01');
        const by_token = token?.startsWith('auth=Bearer ');
        const user = by_token ? named.replace('user=', '') : (args[0] ?? '');
        const given = faults.login_answers.get(user);
        if (given !== undefined) {
          own.refused += 1;
          if (given.startsWith('BYE')) return void socket.end(`* ${given}\r\n`);
          return void socket.write(`${tag} ${given}\r\n`);
        }
        if (faults.refuses_logins || (!by_token && args[1] !== password)) {
          own.refused += 1;
          return void no('[AUTHENTICATIONFAILED] no');
        }
        session.user = user;
        own.logins.push(session.user);
        return void ok();
      }
      case 'LIST':
      case 'LSUB': {
        if (args[1] === '') return void ok('LIST (\\Noselect) "/" ""');
        const special: Record<string, string> = faults.omits.has('LIST') ? {} : { Junk: '\\Junk', Sent: '\\Sent' };
        const names = [...foldersOf(session.user).keys()].filter(
          (each) => /[*%]/.test(args[1] ?? '*') || args[1] === each,
        );
        return void ok(
          ...names.map(
            (each) =>
              `${name.toUpperCase()} (\\HasNoChildren${special[each] ? ` ${special[each]}` : ''}) "/" "${each}"`,
          ),
        );
      }
      case 'SELECT':
      case 'EXAMINE': {
        const found = foldersOf(session.user).get(args[0] as string);
        if (!found || args[0] === faults.unselectable) return void no('no such folder');
        Object.assign(session, { selected: args[0], known: found.mails.length });
        ok(
          'FLAGS (\\Seen)',
          `${found.mails.length} EXISTS`,
          '0 RECENT',
          ...given('UIDVALIDITY', `OK [UIDVALIDITY ${found.uid_validity}] valid`),
          ...given('UIDNEXT', `OK [UIDNEXT ${found.next_uid}] next`),
        );
        return;
      }
      case 'STATUS': {
        const found = foldersOf(session.user).get(args[0] as string);
        if (!found || args[0] === faults.unselectable) return void no('no such folder');
        const items = [
          ...given('UIDNEXT', `UIDNEXT ${found.next_uid}`),
          ...given('UIDVALIDITY', `UIDVALIDITY ${found.uid_validity}`),
        ];
        return void ok(`STATUS "${args[0]}" (${items.join(' ')})`);
      }
      case 'UID SEARCH':
        if (faults.refuses_empty_searches && folder(session.user, session.selected).mails.length === 0)
          return void socket.write(`${tag} BAD there is nothing\r\n`);
        return void ok(`SEARCH ${search(folder(session.user, session.selected), rest).join(' ')}`);
      case 'UID FETCH':
        return void fetch(session, tag, rest);
      case 'APPEND': {
        own.appends += 1;
        void (faults.holds_appends ?? Promise.resolve()).then(() => {
          own.deliver(session.user, literals[0] ?? '', args[0]);
          ok();
        });
        return;
      }
      case 'IDLE': {
        own.idles += 1;
        if (faults.ends_idle) return void ok();
        session.idle_tag = tag;
        socket.write('+ idling\r\n');
        return void tellNews(session);
      }
      case 'LOGOUT': {
        ok('BYE');
        return void socket.end();
      }
      case 'NOOP':
        tellNewsIfSelected(session);
        return void ok();
      default:
        return void ok();
    }
  }

  const given = (item: string, text: string): string[] => (faults.omits.has(item) ? [] : [text]);

  const tellNewsIfSelected = (session: Session) => void (session.selected !== undefined && tellNews(session));

  function fetch({ socket, user, selected }: Session, tag: string, rest: string): void {
    const [, set = '', items = ''] = /^(\S+) \(?(.*?)\)?$/.exec(rest) ?? [];
    const { mails } = folder(user, selected);
    const wanted = new Set(uidsIn(set, mails));
    const [first] = wanted;
    const entries = [...mails.entries()];
    for (const [index, mail] of faults.fetches_backwards ? entries.reverse() : entries) {
      if (!wanted.has(mail.uid)) continue;
      const is_empty = faults.empties_others && mail.uid !== first;
      own.fetched += 1;
      const written = Buffer.concat([
        Buffer.from(
          [
            `* ${index + 1} FETCH (UID ${mail.uid}`,
            ...given('INTERNALDATE', `INTERNALDATE "${imapDate(mail.arrived_at)}"`),
            ...given('RFC822.SIZE', `RFC822.SIZE ${mail.source.length}`),
          ].join(' '),
        ),
        ...bodyOf(is_empty ? { ...mail, source: Buffer.alloc(0) } : mail, items, faults.ignores_partial),
        Buffer.from(')\r\n'),
      ]);
      const is_dropped = faults.drops_at !== undefined && mail.source.includes(faults.drops_at);
      if (faults.drops_fetches > 0 || is_dropped) {
        faults.drops_fetches -= 1;
        socket.write(written.subarray(0, Math.floor(written.length / 2)), () => socket.destroy());
        return;
      }
      socket.write(written);
    }
    for (const [index, { uid }] of faults.fetches_backwards ? entries : []) {
      if (wanted.has(uid)) socket.write(`* ${index + 1} FETCH (UID ${uid} FLAGS (\\Seen))\r\n`);
    }
    socket.write(`${tag} OK done\r\n`);
  }

  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  own.port = (server.address() as AddressInfo).port;
  return own;
}

const newFolder = (): Folder => ({ uid_validity: 1_000, next_uid: 1, mails: [] });

/** Calls back with each command, its literals taken out. */
function readCommands(socket: Socket, command: (line: string, literals: Buffer[]) => void): void {
  let pending = Buffer.alloc(0);
  let line = '';
  let literals: Buffer[] = [];
  let missing = 0;
  socket.on('data', (bytes: Buffer) => {
    pending = Buffer.concat([pending, bytes]);
    for (;;) {
      if (missing > 0) {
        if (pending.length < missing) return;
        literals.push(pending.subarray(0, missing));
        pending = pending.subarray(missing);
        missing = 0;
      }
      const end = pending.indexOf('\r\n');
      if (end < 0) return;
      line += pending.subarray(0, end).toString('utf8');
      pending = pending.subarray(end + 2);
      const literal = /\{(\d+)\+?\}$/.exec(line);
      if (literal) {
        missing = Number(literal[1]);
        line = line.slice(0, literal.index);
        if (!literal[0].includes('+')) socket.write('+ go on\r\n');
        continue;
      }
      command(line, literals);
      line = '';
      literals = [];
    }
  });
}

function search({ mails }: Folder, criteria: string): number[] {
  const [, set] = /^(?:CHARSET \S+ )?UID (\S+)$/i.exec(criteria) ?? [];
  if (set) return uidsIn(set, mails);
  const [, since] = /SINCE "?([0-9]{1,2}-[A-Za-z]{3}-[0-9]{4})"?/i.exec(criteria) ?? [];
  if (since) return mails.filter(({ arrived_at }) => arrived_at >= new Date(`${since} UTC`)).map(({ uid }) => uid);
  if (/^ALL$/i.test(criteria)) return mails.map(({ uid }) => uid);
  const wanted = [...criteria.matchAll(/HEADER "?([A-Za-z-]+)"? "?([^" ]+)"?/gi)];
  return mails
    .filter(({ source }) => {
      const lines = source.toString('utf8').split('\r\n');
      return wanted.some(([, header, value = '']) =>
        lines.some((line) => line.toLowerCase().startsWith(`${header}: `.toLowerCase()) && line.includes(value)),
      );
    })
    .map(({ uid }) => uid);
}

/** The UIDs of a set; `n:*` names the last mail in any case. */
function uidsIn(set: string, mails: StoredMail[]): number[] {
  const last = mails.at(-1)?.uid ?? 0;
  return set.split(',').flatMap((range) => {
    const [first = 0, end = first] = range.split(':').map((bound) => (bound === '*' ? last : Number(bound)));
    const [low, high] = [Math.min(first, end), Math.max(first, end)];
    return mails.filter(({ uid }) => uid >= low && uid <= high).map(({ uid }) => uid);
  });
}

function bodyOf({ source }: StoredMail, items: string, ignores_partial: boolean): Buffer[] {
  const [, section, start, length] = /BODY(?:\.PEEK)?\[([^\]]*)\](?:<(\d+)\.(\d+)>)?/i.exec(items) ?? [];
  if (section === undefined) return [];
  const header_end = source.indexOf('\r\n\r\n') + 4;
  const all = /^HEADER/i.test(section) ? source.subarray(0, header_end) : source;
  const from = Number(start ?? 0);
  const body = start === undefined || ignores_partial ? all : all.subarray(from, from + Number(length));
  const origin = start === undefined ? '' : `<${from}>`;
  return [Buffer.from(` BODY[${section}]${origin} {${body.length}}\r\n`), body];
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const two = (number: number): string => String(number).padStart(2, '0');
const imapDate = (date: Date): string =>
  `${two(date.getUTCDate())}-${months[date.getUTCMonth()]}-${date.getUTCFullYear()} ${date.toISOString().slice(11, 19)} +0000`;
