import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Phrases around a text that say nothing of its kind: greetings, asides, closings, by language. */
const around = new Map<string, string[]>();
for (const line of readFileSync(join(import.meta.dirname, 'texts', 'around.txt'), 'utf8').split('\n')) {
  const [language, part, text] = line.split('\t');
  if (text === undefined) continue;
  const key = `${language} ${part}`;
  around.set(key, [...(around.get(key) ?? []), text.replaceAll('\\n', '\n')]);
}

/** The same text as others would send it: slips, no capitals, no punctuation, asides, another greeting and closing. */
export function variantsOf(text: string, language: string, count: number, next: () => number): string[] {
  return Array.from({ length: count }, () => variantOf(text, language, next));
}

function variantOf(text: string, language: string, next: () => number): string {
  const pick = (part: string): string => {
    const choices = around.get(`${language} ${part}`) ?? [''];
    return choices[Math.floor(next() * choices.length)] ?? '';
  };
  let changed = text;
  while (next() < 0.4) changed = next() < 0.6 ? `${pick('aside')} ${changed}` : `${changed} ${pick('aside')}`;
  if (next() < 0.25) changed = changed.toLowerCase();
  if (next() < 0.2) changed = changed.replace(/[.,;:!]/g, '');
  if (next() < 0.15) changed = changed.replace(/[?¿¡]/g, '');
  if (next() < 0.06) changed = changed.toUpperCase();
  if (next() < 0.5) changed = mistyped(changed, next);
  if (next() < 0.35) changed = `${pick('greeting')}\n\n${changed}`;
  if (next() < 0.35) changed = `${changed}\n\n${pick('closing')}`;
  return changed;
}

/** About one slip in twelve words: a letter left out, doubled, or changed with its neighbour. */
function mistyped(text: string, next: () => number): string {
  return text.replace(/\p{L}{4,}/gu, (word) => {
    if (next() > 0.08) return word;
    const at = 1 + Math.floor(next() * (word.length - 2));
    const kind = next();
    if (kind < 0.4) return word.slice(0, at) + word.slice(at + 1);
    if (kind < 0.6) return word.slice(0, at) + word[at] + word.slice(at);
    return word.slice(0, at) + word[at + 1] + word[at] + word.slice(at + 2);
  });
}
