/** The GraphQL thread: builds the schema at the first request, and answers. See thread.ts. */
import { workerData } from 'node:worker_threads';
import { openDatabase } from '../../core/postgres/database.ts';
import { answerTasks, failureOf } from '../../core/threads/answer_tasks.ts';
import type { Failure } from '../../core/threads/thread.ts';
import { once } from '../../core/values/once.ts';
import type { GraphqlEndpoint } from './endpoint.ts';
import { loadEndpoint } from './load.ts';
import type { Answer, Opening, Task } from './thread.ts';

type Ask = Exclude<Task, 'open'>;

const { url, name, connections } = workerData as Opening;
const database = openDatabase(url, { size: connections, name });
const endpoint = once<GraphqlEndpoint>(async () => (await loadEndpoint()).GraphqlEndpoint.open(database));

answerTasks<Task, Answer | undefined>(
  async (task) => {
    const graphql = await endpoint();
    return task === 'open' ? undefined : answerTo(graphql, task);
  },
  {
    moved: (answer) => (answer ? [answer.body.buffer as ArrayBuffer] : []),
    close: () => database.end(),
  },
);

async function answerTo(graphql: GraphqlEndpoint, { asked, is_batch, deadline, ...reader }: Ask): Promise<Answer> {
  const failures: Failure[] = [];
  const own = { ...reader, deadline: deadline - performance.timeOrigin };
  const { results, cost } = await graphql.answer(asked, own, (error) => failures.push(failureOf(error)));
  const json = is_batch ? `[${results.join(',')}]` : (results[0] as string);
  return { body: new TextEncoder().encode(json), cost, failures };
}
