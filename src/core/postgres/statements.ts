/** Reads SQL as far as it takes to tell its statements apart, and the words of each. */

export interface Statement {
  /** Its first words, for people. */
  text: string;
  /** Its words: names in lower case with their schema, strings with one quote before, and punctuation. Comments are left out. */
  words: string[];
}

const piece = /\s+|--[^\n]*|\/\*|'(?:[^']|'')*'|\$\w*\$|(?:"[^"]*"|[a-z_0-9]+)(?:\.(?:"[^"]*"|[a-z_0-9]+))*|[\s\S]/giy;
const most_text = 70;

/** Splits at the semicolons that stand in no string, comment or body of a function. */
export function statementsOf(sql: string): Statement[] {
  const statements: Statement[] = [];
  let begun = 0;
  let words: string[] = [];
  let bodies = 0;
  piece.lastIndex = 0;
  for (let found = piece.exec(sql); found; found = piece.exec(sql)) {
    const [text] = found;
    if (/^\s|^--/.test(text)) continue;
    if (text === '/*') {
      piece.lastIndex = endOf('*/', sql, piece.lastIndex);
      continue;
    }
    if (words.length === 0) begun = found.index;
    if (/^\$\w*\$$/.test(text)) {
      piece.lastIndex = endOf(text, sql, piece.lastIndex);
      words.push("'");
      continue;
    }
    const word = text.startsWith("'") ? text.slice(0, -1) : text.toLowerCase().replaceAll('"', '');
    if (word === 'atomic' && words.at(-1) === 'begin') bodies++;
    else if (bodies > 0 && word === 'case') bodies++;
    else if (bodies > 0 && word === 'end') bodies--;
    if (word !== ';' || bodies > 0) words.push(word);
    else {
      statements.push({ text: firstOf(sql.slice(begun, found.index)), words });
      words = [];
    }
  }
  if (words.length > 0) statements.push({ text: firstOf(sql.slice(begun)), words });
  return statements;
}

function endOf(mark: string, sql: string, from: number): number {
  const at = sql.indexOf(mark, from);
  return at === -1 ? sql.length : at + mark.length;
}

function firstOf(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, ' ');
  return line.length > most_text ? `${line.slice(0, most_text)}…` : line;
}
