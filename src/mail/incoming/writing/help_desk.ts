/** Removes the text that help desks put around the answer of a person. */
import { isAboveLine } from './attributions.ts';

/** Sentences of the usual templates above what an agent wrote. */
const template =
  /^\W{0,5}(?:your (?:request|ticket|case|enquiry|inquiry)\b.{0,60} (?:has been|was) (?:updated|answered|solved|re-?opened)\b.{0,200}|to add additional comments, reply.{0,100}|to (?:review|view|see|reply to) (?:the|this) (?:status of the )?(?:request|ticket|conversation)\b.{0,200}|(?:you can )?add a comment by replying.{0,100}|ihre (?:anfrage|ticket)\b.{0,60} (?:wurde )?(?:aktualisiert|beantwortet).{0,200}|votre (?:demande|ticket)\b.{0,60} a [ée]t[ée] (?:mise? [àa] jour|trait[ée]e?).{0,200}|(?:su|tu) solicitud\b.{0,60} (?:se )?ha(?: sido)? actualiza.{0,200}|(?:la (?:sua|tua) richiesta|sua solicita[çc][ãa]o)\b.{0,60} (?:aggiornata|atualizada).{0,200})$/iu;
const ruler = /^\s{0,4}(?:[-_=*]\s?){4,80}\s*$/;
const day = /\b(?:19|20)\d\d\b/;
const time = /\b\d{1,2}[:.]\d{2}\b/;
/** `Mia (Writer Blog)`, `Mia, Oct 6, 2026, 09:12 GMT+2`, or the time alone. */
const isByline = (line: string): boolean =>
  line.length < 120 && !/[.!?]$/.test(line) && (/^\S.{0,60} \([^()]{1,60}\)$/.test(line) || isStamp(line));
const isStamp = (line: string): boolean =>
  line.length < 120 && day.test(line) && time.test(line) && line.split(' ').length < 12;
const most_lines_before = 3;

/**
 * The text between the line of `reply above this line` at the top and what was said before, without the words of the template; undefined where no such
 * line is at the top. One that quotes what follows is left to the reading of quotes.
 */
export function readHelpDesk(text: string): string | undefined {
  const lines = text.split('\n', 4_000);
  const first = lines.findIndex((line) => line.trim() !== '');
  const marker = lines.findIndex((line, at) => at < first + most_lines_before && isAboveLine(line));
  if (first < 0 || marker < 0) return undefined;
  const rest = lines.slice(marker + 1);
  const begin = rest.findIndex((line) => !isAround(line));
  if (begin < 0) return '';
  if (/^\s{0,3}>/.test(rest[begin] as string)) return undefined;
  const written = rest.slice(begin);
  const end = written.findIndex((line, at) => ruler.test(line) || (at > 0 && isStamp(line.trim())));
  return withoutByline(end < 0 ? written : written.slice(0, end)).join('\n');
}

const isAround = (line: string): boolean =>
  line.trim() === '' || ruler.test(line) || template.test(line.trim()) || isByline(line.trim());

/** The name above the time of what was said before. */
function withoutByline(lines: string[]): string[] {
  const last = lines.findLastIndex((line) => line.trim() !== '');
  return last > 0 && /\([^()]{1,60}\)$/.test(lines[last] as string) && isByline((lines[last] as string).trim())
    ? lines.slice(0, last)
    : lines;
}
