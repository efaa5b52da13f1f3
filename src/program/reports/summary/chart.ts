/** Small pictures of numbers in plain text. */

const eighths = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** A bar as long as the value is of the most: nothing for 0 and below, and at least a hair for more. */
export function bar(value: number, most: number, width: number): string {
  if (value <= 0 || most <= 0) return '';
  const length = Math.max(1, Math.round((value / most) * width * 8));
  return '█'.repeat(Math.floor(length / 8)) + eighths[length % 8];
}

const heights = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/** A column for each value, from 0 (or the lowest, where that is below) to the highest. */
export function sparkline(values: number[]): string {
  const lowest = Math.min(0, ...values);
  const range = Math.max(0, ...values) - lowest;
  return values
    .map((value) => heights[range === 0 ? 0 : Math.round(((value - lowest) / range) * (heights.length - 1))])
    .join('');
}

/** Returns as many values as there is room for: neighbours are added up. */
export function narrowed(values: number[], width: number): number[] {
  const each = Math.ceil(values.length / width);
  if (each <= 1) return values;
  return Array.from({ length: Math.ceil(values.length / each) }, (_, nth) =>
    values.slice(nth * each, (nth + 1) * each).reduce((sum, value) => sum + value, 0),
  );
}

/** `+12.3 %` of basis points; an em dash where there was nothing before. */
export function changeText(change_bps: number | null): string {
  if (change_bps === null) return '—';
  const tenths = Math.round(Math.abs(change_bps) / 10);
  const sign = change_bps > 0 ? '+' : change_bps < 0 ? '-' : '±';
  return `${sign}${Math.floor(tenths / 10)}.${tenths % 10} %`;
}
