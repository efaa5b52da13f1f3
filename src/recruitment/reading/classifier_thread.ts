/** What the thread runs that judges mails. */
import { answerTasks } from '../../core/threads/answer_tasks.ts';
import { judge } from './classify.ts';

answerTasks(judge);
