/** Patterns that look at a line see no more than so. */
const longest_line = 2_000;

/** A text whose longer lines are broken, behind a blank where one is near: nothing of it is lost. */
export const withShortLines = (text: string): string =>
  text
    .split('\n')
    .map((line) => (line.length > longest_line ? broken(line) : line))
    .join('\n');

function broken(line: string): string {
  const pieces: string[] = [];
  for (let at = 0; at < line.length; ) {
    const end = endOfPiece(line, at);
    pieces.push(line.slice(at, end));
    at = end;
  }
  return pieces.join('\n');
}

function endOfPiece(line: string, begin: number): number {
  const last = begin + longest_line;
  if (last >= line.length) return line.length;
  const blank = line.slice(begin, last).lastIndexOf(' ');
  if (blank > longest_line / 2) return begin + blank + 1;
  // A sign of two code units stays whole.
  return /[\udc00-\udfff]/.test(line[last] as string) ? last - 1 : last;
}
