/** The entry of the thread that classifies mails. */
import { answerTasks } from '../../core/threads/answer_tasks.ts';
import { classify } from './classify.ts';

answerTasks(classify);
