/** A stretch of time in milliseconds since 1970; `to` is no longer part of it. */
export interface Stretch {
  from: number;
  to: number;
}

/** Spans of one length, one after the other. */
export interface SpanRange extends Stretch {
  minutes: number;
}

export interface Cover {
  ranges: SpanRange[];
  /** What no span covers: the facts themselves are read there. */
  edges: Stretch[];
}

const minute_ms = 60_000;
/** Beyond so many ranges, or edges, a plan for each of them takes longer than to read more rows. */
const most_ranges = 24;
const most_edges = 8;

/**
 * Covers windows with the longest spans that fit, none of which is in two windows.
 * @param bounds of windows that follow each other, ascending: n windows have n + 1
 * @param lengths of the spans that there are, in minutes, ascending
 */
export function cover(bounds: number[], lengths: number[]): Cover {
  const longest = coverBy(bounds, lengths);
  const { ranges, edges } = longest.ranges.length <= most_ranges ? longest : coverBy(bounds, lengths.slice(0, 1));
  if (ranges.length <= most_ranges && edges.length <= most_edges) return { ranges, edges };
  return { ranges: [], edges: [{ from: bounds[0] as number, to: bounds.at(-1) as number }] };
}

function coverBy(bounds: number[], lengths: number[]): Cover {
  const longest_first = lengths.toReversed();
  const found: Cover = { ranges: [], edges: [] };
  for (let window = 1; window < bounds.length; window++) {
    fill({ from: bounds[window - 1] as number, to: bounds[window] as number }, longest_first, found);
  }
  const by_length = Map.groupBy(found.ranges, ({ minutes }) => minutes);
  return { ranges: [...by_length.values()].flatMap(joinAdjacent), edges: joinAdjacent(found.edges) };
}

/** From the beginning to the end, so that ranges and edges come in their order. */
function fill({ from, to }: Stretch, lengths: number[], found: Cover): void {
  if (from >= to) return;
  const [minutes, ...shorter] = lengths;
  if (minutes === undefined) {
    found.edges.push({ from, to });
    return;
  }
  const length = minutes * minute_ms;
  const first = Math.ceil(from / length) * length;
  const last = Math.floor(to / length) * length;
  if (first >= last) {
    fill({ from, to }, shorter, found);
    return;
  }
  fill({ from, to: first }, shorter, found);
  found.ranges.push({ from: first, to: last, minutes });
  fill({ from: last, to }, shorter, found);
}

/** @param stretches in their order */
function joinAdjacent<Kind extends Stretch>(stretches: Kind[]): Kind[] {
  const joined: Kind[] = [];
  for (const stretch of stretches) {
    const last = joined.at(-1);
    if (last && last.to === stretch.from) last.to = stretch.to;
    else joined.push({ ...stretch });
  }
  return joined;
}
