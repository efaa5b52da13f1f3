import { TimedThread } from '../../core/threads/timed_thread.ts';
import type { Classified, Unclassified } from './classify.ts';

export type Classifier = TimedThread<Unclassified, Classified>;

const module = new URL('./classifier_thread.ts', import.meta.url);

/** Opens a thread that classifies mails once it is asked. @param of another module, for a mail that no pattern is slow on */
export const openClassifier = (of: URL = module): Classifier =>
  new TimedThread(of, { name: 'Classifying a mail', most_ms: 2_000, most_heap_mib: 256 });
