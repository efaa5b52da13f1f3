/** Judges as the service does, but never ends at one word, and kills its process at another: a pattern that nobody knows of would do the one. */
import { answerTasks } from '../../../src/core/threads/answer_tasks.ts';
import { judge, type Unjudged } from '../../../src/recruitment/reading/classify.ts';

answerTasks((unjudged: Unjudged) => {
  const text = Buffer.from(unjudged.mail as Uint8Array).toString();
  if (text.includes('never-ending') && unjudged.is_judged) for (;;);
  if (text.includes('killing')) process.kill(process.pid, 'SIGKILL');
  return judge(unjudged);
});
