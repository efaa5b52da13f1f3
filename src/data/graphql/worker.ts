/** What the GraphQL thread runs: it builds the schema when it is first asked, and answers. See thread.ts. */
import { parentPort, workerData } from 'node:worker_threads';
import { openDatabase } from '../../core/postgres/database.ts';
import type { GraphqlEndpoint } from './endpoint.ts';
import { loadEndpoint, once } from './load.ts';
import type { Answer, Failure, Opening, Received, Sent, Task } from './thread.ts';

type Ask = Exclude<Task, 'open'>;

const { url, name, connections } = workerData as Opening;
const port = parentPort as NonNullable<typeof parentPort>;
const database = openDatabase(url, { size: connections, name });
const endpoint = once<GraphqlEndpoint>(async () => (await loadEndpoint()).GraphqlEndpoint.open(database));

port.on('message', (sent: Sent) => void (sent === 'close' ? close() : reply(sent.id, sent.task)));

async function close(): Promise<void> {
  await database.end();
  port.close();
}

async function reply(id: number, task: Task): Promise<void> {
  try {
    const graphql = await endpoint();
    const answer = task === 'open' ? undefined : await answerTo(graphql, task);
    port.postMessage({ id, answer } satisfies Received, answer ? [answer.body.buffer as ArrayBuffer] : []);
  } catch (error) {
    port.postMessage({ id, failure: failureOf(error) } satisfies Received);
  }
}

async function answerTo(graphql: GraphqlEndpoint, { asked, is_batch, deadline, ...reader }: Ask): Promise<Answer> {
  const failures: Failure[] = [];
  const own = { ...reader, deadline: deadline - performance.timeOrigin };
  const { results, cost } = await graphql.answer(asked, own, (error) => failures.push(failureOf(error)));
  const json = is_batch ? `[${results.join(',')}]` : (results[0] as string);
  return { body: new TextEncoder().encode(json), cost, failures };
}

function failureOf(error: unknown): Failure {
  const { message, code, stack } = error as Failure;
  return { message: String(message), code, stack };
}
