/** A bank on loopback that pays once under each idempotency key, and a channel to it, as a payout rail would be one. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import sql from 'sql-template-tag';
import { type Channel, type IntentRow, makeCall, type Outcome } from '../../../src/core/jobs/outbox.ts';
import { openDatabase } from '../../../src/core/postgres/database.ts';
import type { Store } from '../../../src/core/postgres/transaction.ts';

export interface Transfer {
  amount_minor: number;
}

/** What the bank does with a request. The effect of a lost one is there; its answer is not. */
export type Answer = 'pays' | 'refuses' | 'is busy' | 'pays and hangs up' | 'hangs up';

export interface Bank {
  url: string;
  /** The idempotency keys under which money moved. */
  effects: Set<string>;
  /** Every request, in the order in which they came. */
  requests: string[];
  /** What it does with the next requests; it pays those after them. */
  answers: Answer[];
  close(): void;
}

export async function startBank(): Promise<Bank> {
  const bank: Omit<Bank, 'url' | 'close'> = { effects: new Set(), requests: [], answers: [] };
  const { effects } = bank;
  const server = createServer((request, response) => {
    const key = String(request.headers['idempotency-key']);
    bank.requests.push(`${request.method} ${key}`);
    const reply = (status: number) => response.writeHead(status).end();
    if (request.method === 'GET') return reply(effects.has(key) ? 200 : 404);
    const answer = bank.answers.shift() ?? 'pays';
    if (answer === 'refuses') return reply(422);
    if (answer === 'is busy') return reply(429);
    if (answer !== 'hangs up') effects.add(key);
    return answer === 'pays' ? reply(201) : request.socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return Object.assign(bank, { url, close });
}

export const transfer_table = `
  create schema bank;
  create table bank.transfer (
    organization_id text not null,
    id text primary key,
    request jsonb not null,
    attempts integer not null default 0,
    in_doubt boolean not null default false,
    status text not null default 'waiting',
    error text
  )`;

export const bankChannel = (bank_url: string): Channel<Transfer> & Required<Pick<Channel<Transfer>, 'lookUp'>> => ({
  opening: () => ({ organization_id: null, request_id: null }),
  read: (tx, { id }) =>
    tx.maybe(sql`
      select request, attempts, in_doubt from bank.transfer where id = ${id} and status = 'waiting' for update`),
  begin: (tx, { id, number }) =>
    tx.all(sql`update bank.transfer set attempts = ${number}, in_doubt = true where id = ${id}`),
  async call({ idempotency_key, request }, cut_off) {
    const status = await ask(bank_url, 'POST', idempotency_key, cut_off, JSON.stringify(request));
    if (status === undefined) return { status: 'unknown', reason: 'The bank hung up.' };
    if (status === 429) return { status: 'later', reason: 'The bank is busy.' };
    if (status === 422) return { status: 'refused', reason: 'The bank refused.' };
    return { status: 'succeeded', reference: idempotency_key };
  },
  async lookUp({ idempotency_key }, cut_off) {
    const status = await ask(bank_url, 'GET', idempotency_key, cut_off);
    if (status === undefined) return { status: 'unknown', reason: 'The bank hung up.' };
    return status === 200 ? { status: 'succeeded', reference: idempotency_key } : undefined;
  },
  record: (tx, { id }, outcome) =>
    tx.all(sql`
      update bank.transfer
      set status = ${statusAfter(outcome)}, in_doubt = ${outcome.status === 'unknown'},
        error = ${outcome.status === 'succeeded' ? null : outcome.reason}
      where id = ${id}`),
});

const statusAfter = ({ status }: Outcome): string =>
  status === 'succeeded' || status === 'refused' ? status : 'waiting';

async function ask(url: string, method: string, key: string, signal: AbortSignal, body?: string) {
  try {
    const headers = { 'Idempotency-Key': key };
    return (await fetch(url, { method, headers, signal, ...(body === undefined ? {} : { body }) })).status;
  } catch (error) {
    if (signal.aborted) throw error;
    return undefined;
  }
}

/** Where a process dies. */
export const kill_points = ['before the call', 'after the call', 'before the outcome', 'after the outcome'] as const;
export type KillPoint = (typeof kill_points)[number];

/** The channel, whose process dies of SIGKILL at a point; a look-up counts as the call. */
export function deadlyChannel(channel: ReturnType<typeof bankChannel>, point: KillPoint): Channel<Transfer> {
  const dieAt = async (here: KillPoint): Promise<void> => {
    if (here !== point) return;
    process.kill(process.pid, 'SIGKILL');
    await sleep(60_000);
  };
  const around =
    <Given extends unknown[], T>(work: (...given: Given) => Promise<T>) =>
    async (...given: Given): Promise<T> => {
      await dieAt('before the call');
      const result = await work(...given);
      await dieAt('after the call');
      return result;
    };
  return {
    ...channel,
    call: around(channel.call),
    lookUp: around(channel.lookUp),
    async record(tx, attempt, outcome) {
      await channel.record(tx, attempt, outcome);
      await dieAt('before the outcome');
    },
  };
}

/** Run as a process: `node bank.ts <database url> <bank url> <row> <kill point>` makes the row's call, and dies at the point. */
if (import.meta.main) {
  const [database_url, bank_url, row, point] = process.argv.slice(2) as [string, string, string, KillPoint];
  const store: Store = {
    database: openDatabase(database_url, { size: 2, name: 'rail test', connect_ms: 120_000 }),
    writeEvents: () => {
      throw new Error('A transfer emits no event.');
    },
  };
  const channel = deadlyChannel(bankChannel(bank_url), point);
  await makeCall(channel, JSON.parse(row) as IntentRow, { store, cut_off: new AbortController().signal });
  process.kill(process.pid, 'SIGKILL');
}
