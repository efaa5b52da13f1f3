import type { Operation } from '../resource/operation.ts';
import type { Examples } from './example.ts';
import type { DeliveryTerms, DescribedEvent } from './openapi_webhooks.ts';

/** A product to describe. */
export interface Described {
  title: string;
  summary: string;
  /** The base path of its API: `/v1`. */
  path: string;
  operations: Operation[];
  /** Type → what it is. */
  events: Record<string, DescribedEvent>;
  examples: Examples;
  /** The permissions of a test key, in Markdown. */
  test_keys: string;
  /** The introduction, in Markdown: explains how the product's parts work together. */
  guide: string;
  /** Further chapters, in Markdown. */
  chapters?: { title: string; text: string }[];
  /** True if operations move money. */
  moves_money?: boolean;
  delivery: DeliveryTerms;
  /** The other products that the service offers. */
  others?: { title: string; path: string }[];
  /** The URL of the service as seen from outside: where a proxy puts a path in front of it, paths are below that. */
  base_url: string;
}

/** Returns the prefix of a product's API and its texts: nothing of `/v1`, `/recruitment` of `/recruitment/v1`. */
export const rootOf = (path: string): string => path.replace(/\/v1$/, '');
