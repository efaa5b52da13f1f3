/** Answers tasks in a thread: see thread.ts. */
import { parentPort, type Transferable } from 'node:worker_threads';
import type { Failure, Received, Sent } from './thread.ts';

interface Options<Answer> {
  /** Returns the parts of an answer that are moved to the other thread instead of copied. */
  moved?(answer: Answer): Transferable[];
  /** Gives back what the thread holds. */
  close?(): Promise<void>;
}

export function answerTasks<Task, Answer>(
  answer: (task: Task) => Answer | Promise<Answer>,
  { moved = () => [], close = async () => {} }: Options<Answer> = {},
): void {
  const port = parentPort as NonNullable<typeof parentPort>;
  const reply = async (id: number, task: Task): Promise<void> => {
    try {
      const given = await answer(task);
      port.postMessage({ id, answer: given } satisfies Received<Answer>, moved(given));
    } catch (error) {
      port.postMessage({ id, failure: failureOf(error) } satisfies Received<Answer>);
    }
  };
  port.on('message', (sent: Sent<Task>) => {
    if (sent === 'close') void close().finally(() => port.close());
    else void reply(sent.id, sent.task);
  });
  port.postMessage('ready' satisfies Received<Answer>);
}

export function failureOf(error: unknown): Failure {
  const { name, message, code, stack } = error as Failure;
  return { name, message: String(message), code, stack };
}
