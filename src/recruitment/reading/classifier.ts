import { TimedThread } from '../../core/threads/timed_thread.ts';
import type { Judged, Unjudged } from './classify.ts';

export type Judges = TimedThread<Unjudged, Judged>;

const module = new URL('./classifier_thread.ts', import.meta.url);

/** A thread that judges mails once it is asked. @param of another module, for a mail that no pattern is slow on */
export const openJudges = (of: URL = module): Judges =>
  new TimedThread(of, { name: 'Judging a mail', most_ms: 2_000, most_heap_mib: 256 });
