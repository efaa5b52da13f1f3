/** A stretch of time in milliseconds since 1970; `to` is no longer part of it. */
export interface Stretch {
  from: number;
  to: number;
}

/** Spans of one length that lie in one window. */
export interface SpanRange extends Stretch {
  minutes: number;
  /** The window, counted from 1. */
  window: number;
}

export interface Cover {
  ranges: SpanRange[];
  /** What no span covers: the facts themselves are read there. */
  edges: Stretch[];
}

const minute_ms = 60_000;
/** Beyond so many edges, one look at the facts of the whole time is quicker. */
const most_edges = 8;

/**
 * Covers windows with the longest spans that fit.
 * @param bounds of windows that follow each other, ascending: n windows have n + 1
 * @param lengths of the spans that there are, in minutes
 */
export function cover(bounds: number[], lengths: number[]): Cover {
  const longest_first = lengths.toSorted((a, b) => b - a);
  const ranges: SpanRange[] = [];
  const edges: Stretch[] = [];
  for (let window = 1; window < bounds.length; window++) {
    const stretch = { from: bounds[window - 1] as number, to: bounds[window] as number };
    fill(stretch, longest_first, window, ranges, edges);
  }
  const joined = joinAdjacent(edges);
  if (joined.length <= most_edges) return { ranges, edges: joined };
  return { ranges: [], edges: [{ from: bounds[0] as number, to: bounds.at(-1) as number }] };
}

function fill({ from, to }: Stretch, lengths: number[], window: number, ranges: SpanRange[], edges: Stretch[]): void {
  if (from >= to) return;
  const [minutes, ...shorter] = lengths;
  if (minutes === undefined) {
    edges.push({ from, to });
    return;
  }
  const length = minutes * minute_ms;
  const first = Math.ceil(from / length) * length;
  const last = Math.floor(to / length) * length;
  if (first >= last) {
    fill({ from, to }, shorter, window, ranges, edges);
    return;
  }
  fill({ from, to: first }, shorter, window, ranges, edges);
  ranges.push({ from: first, to: last, minutes, window });
  fill({ from: last, to }, shorter, window, ranges, edges);
}

function joinAdjacent(edges: Stretch[]): Stretch[] {
  const joined: Stretch[] = [];
  for (const edge of edges.toSorted((a, b) => a.from - b.from)) {
    const last = joined.at(-1);
    if (last && last.to === edge.from) last.to = edge.to;
    else joined.push({ ...edge });
  }
  return joined;
}
