/** A pool that may open fewer connections than it has. */
import type pg from 'pg';

/**
 * Closes what a pool has beyond its `max` as it is given back: a pool in use would keep it for ever.
 * @param most the `max` of each moment, where nothing else sets it
 */
export function letShrink(pool: pg.Pool, most?: () => number): void {
  Object.defineProperties(pool.options, {
    maxUses: { get: () => (pool.totalCount > pool.options.max ? 0 : Number.POSITIVE_INFINITY) },
    ...(most && { max: { get: most } }),
  });
}
