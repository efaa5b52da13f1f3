/** Tries one pattern on texts that were made to be slow on it. */
import { answerTasks } from '../../src/core/threads/answer_tasks.ts';
import type { Pattern } from './collect.ts';
import { pumpsOf } from './pumps.ts';

answerTasks((pattern: Pattern): number => {
  const compiled = new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ''));
  const texts = pumpsOf(pattern);
  for (const text of texts) compiled.test(text);
  return texts.length;
});
