import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Classification, classifyReply } from '../../src/recruitment/replies/classify.ts';
import { likelyLanguages } from '../../src/recruitment/replies/language.ts';
import { findPhrases } from '../../src/recruitment/replies/phrases.ts';
import { read } from '../../src/recruitment/replies/words.ts';
import { figuresOf } from '../train/cross_validation.ts';
import type { Figure, Sample, Side } from './harness.ts';

interface Reply {
  subject: string;
  text: string;
  label: string;
  lang: string;
}

/** The figures of `repliesSides`; the aims are those of the design. */
export const reply_figures: Record<string, Figure> = {
  accuracy: { unit: '', better: 'higher', doc: 'Share of replies whose kind is right, unsubscribes counted as a kind' },
  macro_f1: { unit: '', better: 'higher', doc: 'Mean F1 of the kinds; the aim is 0.85' },
  precision_positive: {
    unit: '',
    better: 'higher',
    doc: 'Share of those classified positive that are; the aim is 0.9',
  },
  recall_angry: { unit: '', better: 'higher', doc: 'Share of the angry that are classified angry; the aim is 0.95' },
  recall_unsubscribe: {
    unit: '',
    better: 'higher',
    doc: 'Share of those who only ask to be taken off; the aim is 0.95',
  },
  language: { unit: '', better: 'higher', doc: 'Share of replies whose language is right' },
  classified_per_s: { unit: '/s', better: 'higher', doc: 'Replies classified a second' },
};

/**
 * The labelled replies under `data`, classified by the service and, as the baseline, by the label that most phrases of the lexicon
 * speak for. Automatic replies are left out: they are told apart before. `newText` cuts quotes and signatures. Null where the
 * data is absent.
 */
export function repliesSides(data: string, newText: (text: string) => string): Side[] | null {
  const file = join(data, 'replies', 'dev.jsonl');
  if (!existsSync(file)) return null;
  const replies = readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Reply)
    .filter(({ label }) => label !== 'auto_reply')
    .map((reply) => ({ ...reply, text: newText(reply.text) }));
  const classify = ({ text, subject }: Reply) => {
    const classified = classifyReply(text, subject);
    return { answer: labelOf(classified), language: classified.language };
  };
  const count = ({ text }: Reply) => ({ answer: mostPhrases(text), language: null });
  return [
    {
      name: 'replies',
      doc: 'classifyReply',
      baseline: 'phrases',
      run: (seconds) => measure(replies, classify, seconds),
    },
    { name: 'phrases', doc: 'the label of most phrases', run: (seconds) => measure(replies, count, seconds) },
  ];
}

type Answer = (reply: Reply) => { answer: string; language: string | null };

async function measure(replies: Reply[], answer: Answer, seconds: number): Promise<Sample> {
  const answers = replies.map((reply) => ({ ...reply, ...answer(reply) }));
  const { accuracy, macro_f1, by_label } = figuresOf(answers);
  const of = (label: string) => by_label.find((figures) => figures.label === label);
  return {
    accuracy,
    macro_f1,
    precision_positive: of('positive')?.precision ?? 0,
    recall_angry: of('angry')?.recall ?? 0,
    recall_unsubscribe: of('unsubscribe')?.recall ?? 0,
    language: answers.filter(({ language, lang }) => language === lang).length / answers.length,
    classified_per_s: speedOf(replies, answer, seconds),
  };
}

function speedOf(replies: Reply[], answer: Answer, seconds: number): number {
  const began = performance.now();
  let classified = 0;
  while (performance.now() - began < seconds * 1_000) {
    for (const reply of replies) answer(reply);
    classified += replies.length;
  }
  return classified / ((performance.now() - began) / 1_000);
}

const labelOf = ({ kind, unsubscribe }: Classification): string =>
  unsubscribe && kind !== 'angry' ? 'unsubscribe' : kind;

/** The label of each phrase of the lexicon. */
const label_of_meaning: Record<string, string> = {
  yes: 'positive',
  joins: 'positive',
  wants_next: 'positive',
  praise: 'positive',
  asking: 'question',
  question_money: 'question',
  question_terms: 'question',
  who_are_you: 'question',
  later: 'not_now',
  asks_again: 'not_now',
  busy: 'not_now',
  declines: 'negative',
  policy: 'negative',
  wrong_person: 'wrong_person',
  left: 'wrong_person',
  refers: 'wrong_person',
  insult: 'angry',
  threat: 'angry',
  spam: 'angry',
  stop: 'angry',
  removal: 'unsubscribe',
};

function mostPhrases(text: string): string {
  const reading = read(text);
  const languages = likelyLanguages(reading);
  const counts = new Map<string, number>();
  for (const { words } of reading.sentences) {
    for (const { meaning } of findPhrases(
      words.map(({ word }) => word),
      languages,
    )) {
      const label = label_of_meaning[meaning];
      if (label) counts.set(label, (counts.get(label) ?? 0) + 1);
    }
  }
  return [...counts].reduce((most, one) => (one[1] > most[1] ? one : most), ['negative', 0] as [string, number])[0];
}
