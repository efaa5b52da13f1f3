import { counted } from '../../core/doctor/amounts.ts';
import type { Line, State } from '../../core/doctor/check.ts';

const name_width = 32;
const state_width = 9;
const indent = ' '.repeat(state_width + name_width);
/** A person reads no longer lines. */
const widest = 120;

/** A line for people, as wide as the terminal, with what to do below it. */
export function linesOf({ state, name, text, remedy }: Line, columns = process.stdout.columns ?? 100): string[] {
  const width = Math.max(Math.min(columns, widest) - indent.length, 20);
  const [first = '', ...more] = wrapped(text, width);
  const head = `${state.padEnd(state_width)}${name.padEnd(name_width)}${first}`.trimEnd();
  const advice = remedy === undefined ? [] : wrapped(`→ ${remedy}`, width);
  return [head, ...[...more, ...advice].map((one) => indent + one)];
}

export function summaryOf(lines: Line[]): string {
  const count = (state: State) => lines.filter((one) => one.state === state).length;
  return `${count('ok')} ok, ${counted(count('warning'), 'warning')}, ${counted(count('error'), 'error')}.`;
}

/** Without control characters: texts hold what others have named. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = [''];
  for (const word of text
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
    .split(' ')) {
    const last = lines.at(-1) as string;
    if (last === '') lines[lines.length - 1] = word;
    else if (last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
