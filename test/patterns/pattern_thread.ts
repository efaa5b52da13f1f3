/** Tries a pattern on a text that was made to be slow on it. */
import { answerTasks } from '../../src/core/threads/answer_tasks.ts';
import type { Pattern } from './collect.ts';
import { pump } from './pumps.ts';

export type Trial = Pattern & { unit: string };

answerTasks(({ source, flags, unit }: Trial): boolean =>
  new RegExp(source, flags.replace(/[gy]/g, '')).test(pump(unit)),
);
