import type { WorkerContext } from './worker_context.ts';

/** Work that is repeated in every worker, never two at a time in the same one. */
export interface Chore {
  every_ms: number;
  run(): Promise<void>;
}

/** The additions of a product to workers. */
export interface Extension {
  /**
   * Tasks whose jobs run in pools of their own, and how many of them at a time for each job of the general pool. Tasks that share a pool
   * stand in one name, separated by spaces.
   */
  slots: Record<string, number>;
  open: OpenExtension;
}

/** The additions of a product to one worker. They last until the worker stops or restarts. */
export interface WorkerExtension {
  /** The objects that tasks get by their class, with `use`. */
  parts: object[];
  chores: Chore[];
  /** The listeners of notifications, by their channels. */
  hears?: Record<string, () => void>;
  /** Frees what these workers held, which are dead. */
  freeFromDead(worker_ids: string[]): Promise<void>;
  /** Settles when nothing of it is running any more. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

/** @param concurrency jobs that the worker runs at a time in its general pool */
type OpenExtension = (context: WorkerContext, concurrency: number) => Promise<WorkerExtension>;

/** The slots of all extensions, as each of them names its own. */
export const slotsOf = (extensions: Extension[]): Record<string, number> =>
  Object.assign({}, ...extensions.map(({ slots }) => slots));

/** Returns the number of pools that the jobs of a worker run in: those with slots of their own, and the general one. */
export const poolsOf = (extensions: Extension[]): number => 1 + Object.keys(slotsOf(extensions)).length;
