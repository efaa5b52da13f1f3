/** A stretch of time in milliseconds since 1970; `to` is no longer part of it. */
export interface Stretch {
  from: number;
  to: number;
}

/** Spans of one length, one after the other. */
export interface SpanRange extends Stretch {
  minutes: number;
}

/** The facts themselves between a bound and the end of a span that is nearest to it. */
export interface Edge extends Stretch {
  /** The windows in which they are counted once more, and once less: 1 is the first. */
  signs: { window: number; sign: 1 | -1 }[];
}

export interface Cover {
  /** The ends of spans that are nearest to the bounds of the windows. */
  bounds: number[];
  /** The spans between them. */
  ranges: SpanRange[];
  edges: Edge[];
}

/** A quarter of an hour, a day, and longer ones, in minutes. */
export type DayLengths = [quarter: number, day: number, ...longer: number[]];

/** Whole days, and what has to be moved to have windows that begin at any quarter of an hour. */
export interface CoverByDays extends Cover {
  /** The ends of days of UTC that are nearest to `bounds`: the windows that `ranges` are counted in. */
  days: number[];
  /** The quarters of an hour that are in another window by `bounds` than by `days`. */
  moved: SpanRange[];
}

export const minute_ms = 60_000;
/** Beyond so many ranges, or edges, to plan and begin them takes longer than to read more rows. */
const most_ranges = 24;
const most_edges = 8;

/**
 * Covers windows with the longest spans that fit, none of which is in two windows, and says which facts have to be moved from one window to the
 * one beside it because spans end elsewhere. Of each bound these are the facts of half a short span at most.
 * @param bounds of windows that follow each other, ascending: n windows have n + 1
 * @param lengths of the spans that there are, in minutes, ascending
 * @returns undefined where spans do not help
 */
export function cover(bounds: number[], lengths: number[]): Cover | undefined {
  const ends = roundedTo(lengths[0] as number, bounds);
  const edges = edgesOf(bounds, ends);
  const longest = coverBy(ends, lengths);
  const ranges = longest.length <= most_ranges ? longest : coverBy(ends, lengths.slice(0, 1));
  if (ranges.length === 0 || ranges.length > most_ranges || edges.length > most_edges) return undefined;
  return { bounds: ends, ranges, edges };
}

/**
 * Covers windows with days and longer spans, and says which quarters of an hour have to be moved from one window to another then. However many
 * windows there are, these are half a day for each bound at most: in few time zones a day is one of UTC.
 * @param lengths of the spans that there are, ascending
 * @returns undefined where spans do not help
 */
export function coverByDays(bounds: number[], [quarter, day, ...longer]: DayLengths): CoverByDays | undefined {
  const ends = roundedTo(quarter, bounds);
  const days = roundedTo(day, ends);
  const edges = edgesOf(bounds, ends);
  if (ends[0] === ends.at(-1) || edges.length > most_edges) return undefined;
  const longest = coverBy(days, [day, ...longer]);
  const ranges = longest.length <= most_ranges ? longest : coverBy(days, [day]);
  return { bounds: ends, days, ranges, moved: movedBy(ends, days, quarter), edges };
}

const roundedTo = (minutes: number, bounds: number[]): number[] =>
  bounds.map((bound) => Math.round(bound / (minutes * minute_ms)) * minutes * minute_ms);

/** Returns the stretches between each bound and its rounded one, where they meet as one. */
function movedBy(ends: number[], days: number[], minutes: number): SpanRange[] {
  const moved: SpanRange[] = [];
  for (const [nth, end] of ends.entries()) {
    const [one, other] = [end, days[nth] as number];
    // Bounds of less than a day apart may be rounded over each other.
    const from = Math.max(Math.min(one, other), moved.at(-1)?.to ?? -Infinity);
    const to = Math.max(one, other);
    if (from < to) moved.push({ from, to, minutes });
  }
  return joinAdjacent(moved);
}

const edgesOf = (bounds: number[], ends: number[]): Edge[] =>
  bounds.flatMap((bound, nth) => edgeOf(bound, ends[nth] as number, nth, bounds.length - 1));

/** Returns the stretch between a bound and the end of a span, which is counted on the wrong side of the bound. */
function edgeOf(bound: number, end: number, nth: number, windows: number): Edge[] {
  if (bound === end) return [];
  const before = { window: nth, sign: bound < end ? (-1 as const) : (1 as const) };
  const after = { window: nth + 1, sign: bound < end ? (1 as const) : (-1 as const) };
  const signs = [before, after].filter(({ window }) => window >= 1 && window <= windows);
  return [{ from: Math.min(bound, end), to: Math.max(bound, end), signs }];
}

function coverBy(ends: number[], lengths: number[]): SpanRange[] {
  const longest_first = lengths.toReversed();
  const found: SpanRange[] = [];
  for (let window = 1; window < ends.length; window++)
    fill({ from: ends[window - 1] as number, to: ends[window] as number }, longest_first, found);
  return [...Map.groupBy(found, ({ minutes }) => minutes).values()].flatMap(joinAdjacent);
}

/** From the beginning to the end, so that ranges come in their order. */
function fill({ from, to }: Stretch, lengths: number[], found: SpanRange[]): void {
  const [minutes, ...shorter] = lengths;
  if (from >= to || minutes === undefined) return;
  const length = minutes * minute_ms;
  const first = Math.ceil(from / length) * length;
  const last = Math.floor(to / length) * length;
  if (first >= last) {
    fill({ from, to }, shorter, found);
    return;
  }
  fill({ from, to: first }, shorter, found);
  found.push({ from: first, to: last, minutes });
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
