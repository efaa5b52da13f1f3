import { likelyLanguages } from './language.ts';
import { findPhrases } from './phrases.ts';
import { type Reading, read, type Sentence } from './words.ts';

/** Features are hashed into this many places. */
export const places = 1 << 16;

/** A text as numbers: places and their values. */
export interface Features {
  at: number[];
  values: number[];
}

/** The weight of each group of features: a group's vector has this length, however long the text is. */
const share = { words: 1, letters: 1, phrases: 0.5, pairs: 0.35, flags: 0.4 };
type Group = keyof typeof share;

export function featuresOf(text: string): Features {
  return featuresOfReading(read(text));
}

export function featuresOfReading(reading: Reading): Features {
  const features: Features = { at: [hash('bias')], values: [0.5] };
  for (const [group, names] of Object.entries(groupsOf(reading)) as [Group, Set<string>][]) {
    const value = share[group] / Math.sqrt(Math.max(names.size, 4));
    for (const name of names) {
      features.at.push(hash(`${group}:${name}`));
      features.values.push(value);
    }
  }
  return features;
}

export function groupsOf(reading: Reading): Record<Group, Set<string>> {
  const groups: Record<Group, Set<string>> = {
    words: new Set(),
    letters: new Set(),
    phrases: new Set(),
    pairs: new Set(),
    flags: new Set(),
  };
  for (const sentence of reading.sentences) {
    addWords(groups.words, sentence);
    addLetters(groups.letters, sentence);
  }
  addPhrases(groups.phrases, groups.pairs, reading);
  addFlags(groups.flags, reading);
  return groups;
}

/** Words, pairs of neighbours, and how a sentence begins and ends. A name stands for every name. */
function addWords(names: Set<string>, { words, end }: Sentence): void {
  let before = '^';
  let before_name = '^';
  for (const { word, capital } of words) {
    const name = capital ? '<name>' : word;
    names.add(word);
    names.add(`${before} ${word}`);
    if (capital || before_name === '<name>') names.add(`${before_name} ${name}`);
    before = word;
    before_name = name;
  }
  names.add(`${before} ${end}`);
}

/** Groups of letters in longer words: they hold what a word's endings and slips of typing change. */
function addLetters(names: Set<string>, { words }: Sentence): void {
  for (const { word } of words) {
    if (word.length < 4 || word.startsWith('<')) continue;
    const padded = ` ${word} `;
    for (let length = 4; length <= 5; length++) {
      for (let start = 0; start + length <= padded.length; start++) names.add(padded.slice(start, start + length));
    }
  }
}

/** Adds the phrases of the lexicon, their positions, and those that stand together. */
function addPhrases(names: Set<string>, pairs: Set<string>, reading: Reading): void {
  const { sentences } = reading;
  const languages = likelyLanguages(reading);
  const said = new Set<string>();
  sentences.forEach((sentence, index) => {
    const found = findPhrases(
      sentence.words.map(({ word }) => word),
      languages,
    );
    const negations = found.filter(({ meaning }) => meaning === 'negation');
    for (const { meaning, start } of found) {
      const negated =
        meaning !== 'negation' && negations.some((negation) => negation.end <= start && start - negation.end <= 3);
      const name = negated ? `not ${meaning}` : meaning;
      said.add(name);
      names.add(name);
      if (index === 0) names.add(`first ${name}`);
      if (index === 0 && start === 0) names.add(`begins ${name}`);
      if (index === sentences.length - 1) names.add(`last ${name}`);
      if (sentence.end === '?') names.add(`asked ${name}`);
      if (sentence.end === '!') names.add(`cried ${name}`);
    }
  });
  const sorted = [...said].sort().slice(0, 16);
  for (const [index, one] of sorted.entries()) {
    for (const other of sorted.slice(index + 1)) pairs.add(`${one} + ${other}`);
  }
}

function addFlags(names: Set<string>, reading: Reading): void {
  const count = reading.sentences.reduce((sum, { words }) => sum + words.length, 0);
  const asked = reading.sentences.filter(({ end }) => end === '?').length;
  const words = new Set(reading.sentences.flatMap((sentence) => sentence.words.map(({ word }) => word)));
  names.add(`length ${count === 0 ? 0 : Math.ceil(Math.log2(count + 1))}`);
  names.add(`question marks ${Math.min(reading.question_marks, 4)}`);
  names.add(`exclamation marks ${Math.min(reading.exclamation_marks, 4)}`);
  if (asked > 0) names.add('asks');
  if (asked > 0 && asked === reading.sentences.length) names.add('asks only');
  if (asked * 2 > reading.sentences.length) names.add('asks mostly');
  if (reading.sentences.at(-1)?.end === '?') names.add('ends asking');
  if (reading.sentences[0]?.end === '?') names.add('begins asking');
  if (reading.shouted > 0.3 && count > 1) names.add('shouts');
  if (reading.shouted === 0 && count > 3) names.add('no capitals');
  for (const sign of ['<mail>', '<url>', '<money>', '<percent>', '<number>']) if (words.has(sign)) names.add(sign);
  if (reading.sentences.some((sentence) => sentence.words.some(({ capital }) => capital))) names.add('names somebody');
}

/** FNV-1a. */
export function hash(name: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < name.length; index++) {
    value = Math.imul(value ^ name.charCodeAt(index), 0x01000193);
  }
  return ((value >>> 16) ^ value) & (places - 1);
}
