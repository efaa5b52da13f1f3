/** The entry of the thread that reads pages. */
import { answerTasks } from '../../core/threads/answer_tasks.ts';
import { type Contacts, contactsOf } from '../addresses/contacts.ts';
import { assess } from '../evidence/score.ts';
import { readPage } from '../pages/read.ts';
import type { PageTask, ReadForBrand } from './page_reader.ts';

answerTasks(({ visited, brand }: PageTask): ReadForBrand | Contacts => {
  if (!brand) return contactsOf(visited);
  const page = readPage(visited.text, visited.url, visited.content);
  return { page, ...assess(page, brand) };
});
