import type { Filters } from './dimension.ts';
import type { Kind } from './kind.ts';
import type { Metric } from './metric.ts';

/** The request that a statement is made for. */
export interface Asked {
  program: { id: string; currency: string };
  /** True if the program's facts are summed: see rebuild.ts. */
  is_summed: boolean;
  /** The numbers of what there are sums of, by dimension and minutes: see sql/live/program/report.sql. */
  slices: Record<string, number>;
  kind: Kind;
  filters: Filters;
  /** The bounds of windows that follow each other, as ISO 8601. */
  bounds: string[];
  /** The number of windows in the period before. */
  previous_windows: number;
  /** By which metric rows are ordered within their window, and how many each window shows; undefined: all of them, in the order of time. */
  order: { metric: Metric; descending: boolean; limit: number } | undefined;
}

/** A row of a statement: for each window its rows, and for each side (0: the period before, 1: the window itself) its totals. */
export type Read = Record<Metric, number> & {
  is_total: boolean;
  /** False in each row where others are to be shown: see top.ts. */
  is_whole: boolean;
  side: number;
  /** The window, counted from 1; 0 in totals. */
  nth: number;
  /** Empty where facts have no key. */
  key: string;
  /** In no order. */
  other_currencies: (Record<string, unknown> & { currency: string })[];
};
