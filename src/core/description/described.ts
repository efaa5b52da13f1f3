import type { Operation } from '../resource/operation.ts';
import type { Examples } from './example.ts';
import type { DeliveryTerms, DescribedEvent } from './openapi_webhooks.ts';

/** What is described: a product. */
export interface Described {
  title: string;
  summary: string;
  /** Where its API lies: `/v1`. */
  path: string;
  operations: Operation[];
  /** Type → what it is. */
  events: Record<string, DescribedEvent>;
  examples: Examples;
  /** What a test key may do, in Markdown. */
  test_keys: string;
  /** How the product's parts play together, in Markdown. */
  guide: string;
  /** What needs a chapter of its own, in Markdown. */
  chapters?: { title: string; text: string }[];
  /** Whether operations move money. */
  moves_money?: boolean;
  delivery: DeliveryTerms;
  /** The other products that the service offers. */
  others?: { title: string; path: string }[];
  /** How the service is reached from outside: where a proxy puts a path in front of it, paths are below that. */
  base_url: string;
}

/** What lies in front of a product's API and its texts: nothing of `/v1`, `/recruitment` of `/recruitment/v1`. */
export const rootOf = (path: string): string => path.replace(/\/v1$/, '');
