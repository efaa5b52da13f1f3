import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, connect as openSocket, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import t from 'tap';
import { flags as flags_of_worker } from '../src/commands/small_memory.ts';
import { register } from '../src/core/jobs/schedule.ts';
import { schedules } from '../src/products.ts';
import { encryption_key, type Json, type Rail, sql } from './harness.ts';

const checkout = join(import.meta.dirname, '..');
/** So long that only a process that hangs takes longer, however busy the machine is. */
const start_ms = 240_000;

/** A process of the service, as an operator runs it. */
export interface Process {
  pid: number;
  /** The URL of its API; empty for a worker, and until it is ready. */
  url: string;
  /** The lines that it has logged. */
  logged: Json[];
  isRunning(): boolean;
  /** Sends a signal. @returns when the process is gone, and all that it has logged is in `logged` */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>;
}

/**
 * Leaves the clocks of workers that run as processes nothing to do: every tick until long after the test has run. What is scheduled runs by
 * `tick` alone, as with the workers of the harness.
 */
export async function stopClocks({ store, query }: Pick<Rail, 'store' | 'query'>): Promise<void> {
  await register(store, schedules);
  await query(sql`
    insert into core.scheduled_run (id, name, tick)
    select core.new_id('run'), s.name, minute
    from core.schedule s
    cross join generate_series(date_trunc('minute', now()), now() + interval '30 minutes', interval '1 minute') as minute
    on conflict do nothing`);
}

const started = new Set<ChildProcess>();
// A test that is ended from outside runs no teardown.
process.once('SIGTERM', () => process.exit(143));
process.once('exit', () => {
  for (const child of started) child.kill('SIGKILL');
});

/** A process that may not be ready yet. */
export interface StartingProcess extends Process {
  /** Settles too when a test ends it meanwhile. @throws Error when it ends by itself before it is ready */
  ready: Promise<void>;
}

/**
 * Starts `rail api` or `rail worker` on a database, and waits until it is ready. It is gone when the file's tests are done.
 * @param settings beside or over the usual ones
 * @param root the directory of another version
 */
export async function startProcess(
  role: 'api' | 'worker',
  database_url: string,
  settings: NodeJS.ProcessEnv = {},
  root = checkout,
): Promise<Process> {
  const started = spawnProcess(role, database_url, settings, root);
  await started.ready;
  return started;
}

/** As `startProcess`, without the wait: for a test that may kill it while it starts. */
export function spawnProcess(
  role: 'api' | 'worker',
  database_url: string,
  settings: NodeJS.ProcessEnv = {},
  root = checkout,
): StartingProcess {
  // A worker starts itself anew unless it has these.
  const flags = role === 'worker' ? flags_of_worker : [];
  const child = spawn(process.execPath, [...flags, join(root, 'src/main.ts'), role], {
    env: {
      MALLOC_ARENA_MAX: role === 'worker' ? '1' : undefined,
      ...process.env,
      DATABASE_URL: database_url,
      PORT: '0',
      LOG_LEVEL: 'info',
      RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'),
      RAIL_WEBHOOK_ALLOW_PRIVATE: '1',
      ...settings,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  started.add(child);
  const closed = once(child, 'close').finally(() => started.delete(child));
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  let isEnded = false;
  const end = async (signal: 'SIGTERM' | 'SIGKILL') => {
    isEnded = true;
    if (isRunning()) child.kill(signal);
    await closed;
    return child.exitCode;
  };
  t.teardown(() => end('SIGKILL'));
  const logged: Json[] = [];
  const starting: StartingProcess = { pid: child.pid as number, url: '', logged, isRunning, end, ready: isReady() };
  return starting;

  async function isReady(): Promise<void> {
    const ready = await readLog(child, logged, `${role} ready`).catch((error) => {
      if (!isEnded) throw error;
    });
    if (ready?.port) starting.url = `http://127.0.0.1:${ready.port}`;
  }
}

/** Collects what a process logs. @returns the line that says that it is ready */
function readLog(child: ChildProcess, logged: Json[], ready: string): Promise<Json> {
  return new Promise((resolve, reject) => {
    const said: string[] = [];
    const fail = () => reject(new Error(`The process ended before it was ready:\n${said.join('\n')}`));
    const timer = setTimeout(() => reject(new Error(`Not '${ready}' in time:\n${said.join('\n')}`)), start_ms);
    child.once('exit', fail).once('exit', () => clearTimeout(timer));
    createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', (line) => {
      said.push(line);
      if (process.env.LOG_LEVEL) process.stderr.write(`${child.pid} ${line}\n`);
      if (!line.startsWith('{')) return;
      const entry = JSON.parse(line);
      logged.push(entry);
      if (entry.msg !== ready) return;
      clearTimeout(timer);
      resolve(entry);
    });
  });
}

/** A statement on its way to Postgres, as the gate sees it. */
export interface Statement {
  /** Its text, also where it was prepared before. */
  text: string;
}

export interface Gate {
  /** The database, through the gate. */
  url: string;
  /** Leads new connections to another port. */
  leadTo(port: number): void;
  /**
   * Stops all traffic at the first statement that `picks`: before it reaches Postgres, or after Postgres has run it and before the answer
   * is passed on. Settles when that has come about; then no byte passes until `cut`.
   */
  stopAt(side: 'before' | 'after', picks: (statement: Statement, answer: Buffer | undefined) => boolean): Promise<void>;
  /** As `stopAt`, but stops the one connection that the statement is on; `cut` breaks it too. */
  holdAt(side: 'before' | 'after', picks: (statement: Statement) => boolean): Promise<void>;
  /** Forgets what `stopAt` waits for. */
  disarm(): void;
  /** Breaks every connection, and lets new ones pass. */
  cut(): void;
  /** Requests to cancel from now on, each of which stays on its way until its sender gives it up. */
  holdCancels(): { count: number };
}

type Picks = (statement: Statement, answer: Buffer | undefined) => boolean;

/**
 * A gate before Postgres, which reads the protocol: between any two statements of a process it can hold everything, so that the process
 * can be killed exactly there.
 */
export async function startGate(database_url: string): Promise<Gate> {
  const inside = new URL(database_url);
  let port = Number(inside.port);
  let armed: { side: 'before' | 'after'; picks: Picks; all: boolean; done: () => void } | undefined;
  let isShut = false;
  let cancels: { count: number } | undefined;
  const sockets = new Set<Socket>();

  const server = createServer((client) => {
    let isHeld = false;
    const shut = () => {
      isHeld = true;
      isShut ||= armed?.all === true;
      armed?.done();
      armed = undefined;
    };
    const postgres = openSocket(port, '127.0.0.1');
    for (const socket of [client, postgres]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        postgres.destroy();
      });
    }
    // Statements that were sent and not yet answered: a query or a Sync is answered by one ReadyForQuery.
    const unanswered: { statement: Statement; answer: Buffer[]; isPicked: boolean }[] = [];
    client.on('data', (chunk) => {
      if (cancels && isCancel(chunk)) return void cancels.count++;
      for (const { statement, bytes } of fromClient(chunk)) {
        if (isShut || isHeld) return;
        const isPicked = armed !== undefined && statement !== undefined && armed.picks(statement, undefined);
        if (isPicked && armed?.side === 'before') return shut();
        if (statement) unanswered.push({ statement, answer: [], isPicked: isPicked && armed?.side === 'after' });
        postgres.write(bytes);
      }
    });
    postgres.on('data', (chunk) => {
      for (const { type, bytes } of fromPostgres(chunk)) {
        if (isShut || isHeld) return;
        const [first] = unanswered;
        if (!first) {
          client.write(bytes);
          continue;
        }
        first.answer.push(bytes);
        if (type !== 'Z') continue;
        unanswered.shift();
        const answer = Buffer.concat(first.answer);
        if (armed?.side === 'after' && (first.isPicked || armed.picks(first.statement, answer))) return shut();
        client.write(answer);
      }
    });
    const fromClient = frontend();
    const fromPostgres = backend();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
    isShut = false;
  };
  t.teardown(() => {
    cut();
    server.close();
  });

  const arm = (side: 'before' | 'after', picks: Picks, all: boolean) =>
    new Promise<void>((done) => {
      armed = { side, picks, all, done };
    });
  const outside = new URL(database_url);
  outside.hostname = '127.0.0.1';
  outside.port = String((server.address() as AddressInfo).port);
  return {
    url: outside.href,
    leadTo(to) {
      port = to;
    },
    stopAt: (side, picks) => arm(side, picks, true),
    holdAt: (side, picks) => arm(side, (statement, answer) => answer === undefined && picks(statement), false),
    disarm() {
      armed = undefined;
    },
    cut,
    holdCancels() {
      cancels = { count: 0 };
      return cancels;
    },
  };
}

const isCancel = (chunk: Buffer): boolean => chunk.length >= 8 && chunk.readInt32BE(4) === 80_877_102;

/** Splits what a client sends into pieces that end with a statement, or hold none. */
function frontend(): (chunk: Buffer) => { statement?: Statement; bytes: Buffer }[] {
  const texts = new Map<string, string>();
  let rest = Buffer.alloc(0);
  let held: Buffer[] = [];
  let text = '';
  let hasStarted = false;
  return (chunk) => {
    const pieces: { statement?: Statement; bytes: Buffer }[] = [];
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const header = hasStarted ? 1 : 0;
      if (rest.length < header + 4) return pieces;
      const length = header + rest.readInt32BE(header);
      if (rest.length < length) return pieces;
      const message = rest.subarray(0, length);
      rest = rest.subarray(length);
      const type = hasStarted ? String.fromCharCode(message[0] as number) : '';
      hasStarted = true;
      if (type === 'Q') text = message.toString('utf8', 5, length - 1);
      if (type === 'P') {
        const [name, query] = message.toString('utf8', 5).split('\0') as [string, string];
        texts.set(name, query);
      }
      if (type === 'B') text = texts.get(message.toString('utf8', 5).split('\0')[1] as string) ?? '';
      held.push(message);
      if ('PBDECH'.includes(type) && type !== '') continue;
      const bytes = Buffer.concat(held);
      held = [];
      pieces.push(type === 'Q' || type === 'S' ? { statement: { text }, bytes } : { bytes });
    }
  };
}

/** Splits what Postgres sends into messages. */
function backend(): (chunk: Buffer) => { type: string; bytes: Buffer }[] {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    const messages: { type: string; bytes: Buffer }[] = [];
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 5 && rest.length >= 1 + rest.readInt32BE(1)) {
      const length = 1 + rest.readInt32BE(1);
      messages.push({ type: String.fromCharCode(rest[0] as number), bytes: rest.subarray(0, length) });
      rest = rest.subarray(length);
    }
    return messages;
  };
}
