import type { FastifyInstance } from 'fastify';
import type { Examples } from '../core/description/example.ts';
import type { Part } from '../core/part.ts';
import type { Store, Tx } from '../core/postgres/transaction.ts';
import type { Operation } from '../core/resource/operation.ts';
import type { Services } from '../core/resource/services.ts';
import type { EventPolicy } from './events/policy.ts';

/** A product is a value: everything that the processes and commands need to know of it. */
export interface Product extends Part {
  /** The area of its tasks, and its schema in Postgres. */
  name: string;
  /** The title of the description. */
  title: string;
  events: EventPolicy;
  /** Its API, which is most of its code: loaded by what serves it, and not by workers and commands. */
  loadApi(): Promise<ProductApi>;
  /** The part of the demo organization that belongs to this product. */
  demo?: Demo;
}

export interface ProductApi {
  /** A sentence about the product, for the description. */
  summary: string;
  /** The introduction of the description, in Markdown: explains how the parts work together. */
  guide: string;
  /** Further chapters of the description, in Markdown. */
  chapters?: { title: string; text: string }[];
  /** True if its operations move money. */
  moves_money?: boolean;
  /** The permissions of test keys, in Markdown. */
  test_keys: string;
  /** Values for the examples of the description. */
  examples: Examples;
  /** Every operation. */
  operations: Operation[];
  /** Scopes that keys may have besides those that its operations need. */
  scopes: string[];
  /** Adds its routes that are no operations. */
  mountRoutes?(app: FastifyInstance, store: Store, services: Services): void;
}

/** A record that `rail start` makes, once, and shows to a first caller. */
export interface Demo {
  /** `program`: demo.json holds its id as `program_id`. */
  noun: string;
  /** The path that it is read at: `/v1/programs`. */
  path: string;
  /** @param known_id the one that demo.json names  @returns its id */
  open(tx: Tx, known_id: string | undefined): Promise<string>;
  /** Further texts of the product's demo, by name: about the record with this id, where the service is at `services.base_url`. */
  fields?(tx: Tx, id: string, services: Services): Promise<Record<string, string>>;
}

/** The first one is shown at `/docs`. */
export type Products = [Product, ...Product[]];
