/** Tables for people: as wide as they are, or as a terminal has room for. */

/** The columns of the terminal; without one, such as in a pipe, there is no end of them. */
const room = (): number => (process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY);

/**
 * Lines of aligned columns under their names, or what there is to say when there are none. Where that is too wide, what is the same in all rows stands
 * once below them; where it still is, each row is a block with a line for each column. What cells hold cannot control the terminal.
 */
export function table(columns: string[], rows: (string | number)[][], when_empty: string, width = room()): string[] {
  if (rows.length === 0) return [when_empty];
  const cells = rows.map((row) => row.map((cell) => printable(String(cell))));
  const whole = aligned(columns, cells);
  if (fits(whole, width)) return whole;
  const varies = columns.map((_, nth) => rows.length === 1 || cells.some((row) => row[nth] !== cells[0]?.[nth]));
  const varying = <Cell>(row: Cell[]): Cell[] => row.filter((_, nth) => varies[nth]);
  const same = columns.flatMap((name, nth) =>
    varies[nth] || cells[0]?.[nth] === '' ? [] : [`${name}: ${cells[0]?.[nth]}`],
  );
  const narrower = aligned(varying(columns), cells.map(varying));
  const below = same.length > 0 ? ['', ...same] : [];
  if (fits(narrower, width)) return [...narrower, ...below];
  return [...blocks(varying(columns), cells.map(varying)), ...below];
}

const fits = (lines: string[], width: number): boolean => lines.every((line) => widthOf(line) <= width);

/** Numbers and amounts are aligned to the right. */
function aligned(columns: string[], rows: string[][]): string[] {
  const widths = columns.map((name, nth) => Math.max(...[name, ...rows.map((row) => row[nth] as string)].map(widthOf)));
  const right = columns.map(
    (_, nth) => rows.every((row) => isNumber(row[nth] as string)) && rows.some((row) => row[nth]),
  );
  return [columns, ...rows].map((row) =>
    row
      .map((cell, nth) => {
        const space = ' '.repeat((widths[nth] as number) - widthOf(cell));
        return right[nth] ? space + cell : cell + space;
      })
      .join('  ')
      .trimEnd(),
  );
}

/** `1,234`, `12.50 %`, `USD 1,234.50`, `USD 1,234.50 in 3`, or nothing. */
const isNumber = (cell: string): boolean => /^(([A-Z]{3} )?-?[\d,]+(\.\d+)?( %| in [\d,]+)?)?$/.test(cell);

/** Cells with nothing in them are left out. */
function blocks(columns: string[], rows: string[][]): string[] {
  const width = Math.max(...columns.map(widthOf));
  return rows.flatMap((row, at) => [
    ...(at > 0 ? [''] : []),
    ...row.flatMap((cell, nth) => (cell === '' ? [] : [`${(columns[nth] as string).padEnd(width)}  ${cell}`.trim()])),
  ]);
}

/** Without control characters, but those that join letters and emojis. */
const printable = (text: string): string => text.replaceAll(/(?:(?!\u200c|\u200d)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}])+/gu, ' ');

const characters = new Intl.Segmenter('en');
const wide =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60]/u;

/** Returns the columns that a text takes on a terminal: two for a character of Chinese, Japanese or Korean, and for an emoji. */
function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  return [...characters.segment(text)].reduce((width, { segment }) => width + (wide.test(segment) ? 2 : 1), 0);
}
