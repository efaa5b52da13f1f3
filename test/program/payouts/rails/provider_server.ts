import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Call {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage['headers'];
  raw: string;
}

export interface Answer {
  status: number;
  headers?: Record<string, string>;
  /** Sent as JSON; a text is sent as it is. */
  body?: unknown;
}

/** The fault of one call, before or after it had its effect. */
export type Fault =
  | { kind: 'drop' | 'hang'; when: 'before' | 'after' }
  | { kind: 'answer'; when: 'before' | 'after'; answer: Answer };

export interface ScriptedFault {
  method?: string;
  /** The start of the path. */
  path: string;
  fault: Fault;
  /** The number of calls that it concerns. Unset: one. */
  times?: number;
}

/** The payment under one key: a test compares it with Rail's state. */
export interface Movement {
  key: string;
  /** The number of times that money left the account for it. */
  times: number;
  amount_minor: number;
  currency: string;
  came_back: boolean;
}

export interface Webhook {
  headers: Record<string, string>;
  raw_body: Buffer;
}

/**
 * A server on loopback that follows a provider's public documentation: it keeps accounts, knows repetitions as the provider does, and fails
 * as a test tells it to. `POST /_control` with `{call, arguments}` calls its methods from another process.
 */
export abstract class ProviderServer {
  readonly calls: Call[] = [];
  readonly movements = new Map<string, Movement>();
  /** The time of each answer. */
  delay_ms = 0;
  readonly #faults: ScriptedFault[] = [];
  #script: (Fault | undefined)[] = [];
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error) => response.destroy(error));
    });
    // No connection is closed while a call may be on its way over it.
    this.#server.keepAliveTimeout = 0;
  }

  /** Answers a call, with its effect. */
  protected abstract handle(call: Call): Answer;

  /** Called with the final answer, which differs from the one of `handle` where a fault is scripted. */
  protected answered(_call: Call, _answer: Answer): void {}

  async start(port = 0): Promise<this> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  fail(fault: ScriptedFault): void {
    this.#faults.push({ ...fault, times: fault.times ?? 1 });
  }

  /** Sets the faults of the next calls, whichever they are. */
  script(faults: readonly (Fault | undefined)[]): void {
    this.#script = [...faults];
  }

  moved(): Movement[] {
    return [...this.movements.values()];
  }

  movedFor(key: string): Movement | undefined {
    return this.movements.get(key);
  }

  protected move(key: string, amount_minor: number, currency: string): void {
    const times = (this.movements.get(key)?.times ?? 0) + 1;
    this.movements.set(key, { key, times, amount_minor, currency, came_back: false });
  }

  protected bringBack(key: string): void {
    const movement = this.movements.get(key);
    if (movement) this.movements.set(key, { ...movement, came_back: true });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname: path, searchParams: query } = new URL(request.url ?? '/', 'http://provider');
    const raw = Buffer.concat(await Array.fromAsync(request)).toString('utf8');
    const call = { method: request.method ?? 'GET', path, query, headers: request.headers, raw };
    if (path === '/_control') return send(response, { status: 200, body: this.#control(JSON.parse(raw)) ?? null });
    this.calls.push(call);
    const fault = this.#takeFault(call);
    if (fault?.when === 'before') return this.#break(call, response, fault);
    const answer = this.handle(call);
    if (fault) return this.#break(call, response, fault);
    this.answered(call, answer);
    if (this.delay_ms > 0) await sleep(this.delay_ms);
    send(response, answer);
  }

  #takeFault({ method, path }: Call): Fault | undefined {
    const next = this.#script.shift();
    if (next) return next;
    const scripted = this.#faults.find(
      (each) => path.startsWith(each.path) && (each.method ?? method) === method && (each.times ?? 0) > 0,
    );
    if (!scripted) return undefined;
    scripted.times = (scripted.times ?? 1) - 1;
    return scripted.fault;
  }

  #break(call: Call, response: ServerResponse, fault: Fault): void {
    if (fault.kind === 'drop') response.destroy();
    if (fault.kind !== 'answer') return;
    if (fault.when === 'after') this.answered(call, fault.answer);
    send(response, fault.answer);
  }

  #control({ call, arguments: given = [] }: { call: string; arguments?: unknown[] }): unknown {
    return (this as unknown as Record<string, (...given: unknown[]) => unknown>)[call]?.(...given);
  }
}

function send(response: ServerResponse, { status, headers, body = '' }: Answer): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}

/** Delivers a webhook as the provider would. */
export async function deliver(url: string, { headers, raw_body }: Webhook): Promise<Response> {
  const body = new Uint8Array(raw_body);
  return fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body });
}

/** Calls a method of a server that runs in another process. */
export async function control(url: string, call: string, ...given: unknown[]): Promise<unknown> {
  const response = await fetch(`${url}/_control`, {
    method: 'POST',
    body: JSON.stringify({ call, arguments: given }),
  });
  return response.json();
}

/** Runs a file by itself: prints the server's URL and the data that its clients need, as one line of JSON. */
export async function runAlone(server: ProviderServer, more: () => object = () => ({})): Promise<void> {
  await server.start(Number(process.env.PORT ?? 0));
  process.stdout.write(`${JSON.stringify({ url: server.url, ...more() })}\n`);
}

const digits_of: Record<string, number> = { JPY: 0, KWD: 3 };

/** An amount as a decimal in minor units. Undefined: not one of this currency. */
export function minorUnits(decimal: string, currency: string): number | undefined {
  const digits = digits_of[currency] ?? 2;
  const [, whole, fraction = ''] = /^(\d+)(?:\.(\d+))?$/.exec(decimal) ?? [];
  if (whole === undefined || fraction.length > digits) return undefined;
  return Number(BigInt(whole) * 10n ** BigInt(digits) + BigInt(fraction.padEnd(digits, '0') || '0'));
}
