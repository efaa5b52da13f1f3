/** Admits the requests that pages send with a publishable key: from its origins alone, in small bodies, and not too often. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { withinDeadline } from '../../core/http/deadline.ts';
import { checkJsonText } from '../../core/http/json_text.ts';
import { WindowCounts } from '../../core/http/window_counts.ts';
import { rateLimited } from '../../core/metrics/metrics.ts';
import { publicNetworkOf } from '../../core/net/address.ts';
import { addressOf } from '../../core/net/client_address.ts';
import { type Database, runFor } from '../../core/postgres/database.ts';
import { Problem } from '../../core/values/problem.ts';
import { pathOfUnstorable } from '../../core/values/texts/stored_text.ts';
import { validationProblem } from '../../core/values/validation.ts';
import { keyQuery, type UsableKey } from './publishable_key.ts';

/** The longest body, in bytes. */
export const most_bytes = 1_024;
/** Requests in each second: of one public address (in IPv6 of its /64), and with one key. Each process counts for itself. */
const most_of_address = 10;
const most_of_key = 2_000;
/** A key that was revoked or changed is so in every process within this time. */
const known_ms = 1_000;
/** Beyond this many, keys are forgotten. */
const most_keys = 1_000;

export interface Admitted<Body> {
  key: UsableKey;
  body: Body;
  /** The body as it came, which is valid. */
  sent: Body;
  /** The origin of the page, which the key allows. */
  origin: string;
}

/** Admits the requests of one process. */
export class Admission {
  readonly #database: Database;
  readonly #server: FastifyInstance;
  readonly #used = new WindowCounts(1_000);
  readonly #known = new Map<string, { until: number; row: Promise<UsableKey | undefined> }>();

  constructor(database: Database, server: FastifyInstance) {
    this.#database = database;
    this.#server = server;
  }

  /**
   * Reads a body and its key. Once the origin is known to be allowed, the page may read the answer, errors included.
   * @throws Problem invalid_json, missing_parameter, invalid_api_key, revoked_api_key, origin_not_allowed, rate_limit_exceeded
   */
  async admit<Body extends { key: string }>(
    request: FastifyRequest,
    reply: FastifyReply,
    schema: z.ZodType<Body>,
  ): Promise<Admitted<Body>> {
    reply.header('Vary', 'Origin');
    const network = publicNetworkOf(addressOf(request));
    if (network !== undefined && this.#used.add(network) > most_of_address) {
      throw tooMany(`An address may send ${most_of_address} requests in a second.`);
    }
    const sent = jsonOf(request.rawBody);
    const { key: text } = keyed(sent);
    const key = await this.#find(text);
    if (!key) throw new Problem('invalid_api_key', 'The publishable key does not exist.', { param: 'key' });
    if (key.is_revoked) throw new Problem('revoked_api_key', 'The publishable key was revoked.', { param: 'key' });
    const origin = request.headers.origin ?? '';
    if (!key.allowed_origins.includes(origin)) throw notAllowed(origin);
    reply.headers({ 'Access-Control-Allow-Origin': origin, 'Access-Control-Allow-Credentials': 'true' });
    if (this.#used.add(key.id) > most_of_key) throw tooMany('The key is used too often.');
    const { data: body, error } = schema.safeParse(sent);
    if (error) throw validationProblem(error, 'body', sent);
    if (pathOfUnstorable(body)) throw new Problem('invalid_json', 'The body has a character that cannot be stored.');
    return { key, body, sent: sent as Body, origin };
  }

  #find(text: string): Promise<UsableKey | undefined> {
    const now = performance.now();
    const known = this.#known.get(text);
    if (known && known.until > now) return known.row;
    if (this.#known.size >= most_keys) this.#known.clear();
    // Others may wait for it too: it does not end with this request.
    const row = withinDeadline({ server: this.#server, giveUp: undefined }, 'publishable_keys', async (asked) => {
      const [found] = await runFor<UsableKey>(this.#database, asked, keyQuery(text));
      return found;
    });
    this.#known.set(text, { until: now + known_ms, row });
    row.catch(() => this.#known.delete(text));
    return row;
  }
}

function jsonOf(raw: Buffer): unknown {
  const text = raw.toString('utf8');
  checkJsonText(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Problem('invalid_json', 'The body is not valid JSON.');
  }
  return value;
}

const Keyed = z.looseObject({ key: z.string().regex(/^rail_pk_(live|test)_[\w-]{32}$/, 'must be a publishable key') });

function keyed(sent: unknown): { key: string } {
  const { data, error } = Keyed.safeParse(sent);
  if (error) throw validationProblem(error, 'body', sent);
  return data;
}

const notAllowed = (origin: string): Problem =>
  new Problem(
    'origin_not_allowed',
    `Pages of '${origin.slice(0, 255)}' may not use this key. Add the origin to its 'allowed_origins'.`,
    { param: 'Origin' },
  );

function tooMany(message: string): Problem {
  rateLimited();
  return new Problem('rate_limit_exceeded', message, { headers: { 'Retry-After': '1' } });
}
