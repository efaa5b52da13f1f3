/** Shares between the visits of a process: connections, pacing, and the robots.txt files that were read. */

import type { Dispatcher } from 'undici';
import type { AddressPolicy } from '../../core/net/address.ts';
import { createPinnedAgent } from '../../core/net/agent.ts';
import { type Clock, createPacing, type Pacing, system_clock } from './pacing.ts';
import { product_token, RobotsCache } from './robots.ts';

export interface Visitor {
  agent: Dispatcher;
  policy: AddressPolicy;
  user_agent: string;
  pacing: Pacing;
  clock: Clock;
  robots: RobotsCache;
  /** Over all requests that a page takes, redirects included; waiting for the pacing is not counted. robots.txt has the same once more. */
  timeout_ms: number;
  /** Ends all connections. */
  close(): Promise<void>;
}

export interface VisitorOptions extends AddressPolicy {
  /** The public URL of this service: whoever is visited can find out by whom. */
  base_url: string;
  nameServers?: readonly string[] | undefined;
  /** Between two requests to a host. */
  interval_ms?: number;
  clock?: Clock;
  timeout_ms?: number;
}

const default_timeout_ms = 5_000;

/** One to a process. */
export function createVisitor({
  base_url,
  interval_ms,
  clock = system_clock,
  timeout_ms = default_timeout_ms,
  ...net
}: VisitorOptions): Visitor {
  const agent = createPinnedAgent({ ...net, connectTimeoutMs: timeout_ms });
  return {
    agent,
    policy: net,
    user_agent: `${product_token}/1.0 (+${base_url.replace(/(?<!\/)\/+$/, '')}/docs)`,
    pacing: createPacing({ interval_ms, clock }),
    clock,
    robots: new RobotsCache(clock),
    timeout_ms,
    close: () => agent.destroy(),
  };
}
