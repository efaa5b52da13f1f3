import { answerTasks } from '../../../src/core/threads/answer_tasks.ts';

/** Does what it is asked, the worst of it too. */
answerTasks((task: string) => {
  if (task === 'for ever') for (;;);
  // The kind of pattern that strangers make use of.
  if (task === 'a pattern') /^(?:-+)+$/.test(`${'-'.repeat(60)}x`);
  if (task === 'memory') for (const held: number[][] = []; ; ) held.push(Array(100_000).fill(1.5));
  if (task === 'end') process.exit();
  if (task === 'fail') throw Object.assign(new TypeError('It failed.'), { code: 'of_its_own' });
  return task.toUpperCase();
});
