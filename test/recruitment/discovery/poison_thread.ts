/** Reads pages as the service does, but never ends at one word, and fills its memory at another. */
import { answerTasks } from '../../../src/core/threads/answer_tasks.ts';
import { contactsOf } from '../../../src/recruitment/addresses/contacts.ts';
import type { PageTask } from '../../../src/recruitment/discovery/page_reader.ts';
import { assess } from '../../../src/recruitment/evidence/score.ts';
import { readPage } from '../../../src/recruitment/pages/read.ts';

answerTasks(({ visited, brand }: PageTask) => {
  if (visited.text.includes('never-ending')) for (;;);
  const filling: number[][] = [];
  while (visited.text.includes('filling')) filling.push(new Array(100_000).fill(0));
  if (!brand) return contactsOf(visited);
  const page = readPage(visited.text, visited.url, visited.content);
  return { page, ...assess(page, brand) };
});
