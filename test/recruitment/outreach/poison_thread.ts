/** Classifies as the service does, but never ends at one word, and kills its process at another: a pattern that nobody knows of would do the one. */
import { answerTasks } from '../../../src/core/threads/answer_tasks.ts';
import { classify, type Unclassified } from '../../../src/recruitment/reading/classify.ts';

answerTasks((unclassified: Unclassified) => {
  const text = Buffer.from(unclassified.mail as Uint8Array).toString();
  if (text.includes('never-ending') && unclassified.is_classified) for (;;);
  if (text.includes('killing')) process.kill(process.pid, 'SIGKILL');
  return classify(unclassified);
});
