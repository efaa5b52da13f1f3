import t from 'tap';
import type { Operation } from '../../../src/core/resource/operation.ts';
import { operations } from '../../../src/products.ts';
import { type Json, startRail, startReceiver } from '../../harness.ts';
import { fieldsOf, resources, send, World } from '../../samples.ts';

const rail = await startRail();
const receiver = await startReceiver();
const { paths } = (await (await fetch(`${rail.address}/v1/openapi.json`)).json()) as Json;

/** Where an example says when, it means lately. */
const example_time = '2026-11-21T09:30:00.000Z';
const an_hour_ago = new Date(Date.now() - 3_600_000).toISOString();

for (const operation of operations.filter(takesBody)) {
  t.test(`${operation.name}: the example is a body that really succeeds`, async (t) => {
    const world = new World(await rail.organization(), receiver.url);
    await prepared[operation.name]?.(world);
    const { path } = await world.sample(operation);
    const { requestBody } = paths[operation.path][operation.method.toLowerCase()];
    const { example } = requestBody.content['application/json'];
    const body = await withRealIds(JSON.stringify(example).replaceAll(example_time, an_hour_ago), world);
    const answer = await send(world.caller, operation, { path, query: {}, body });
    t.equal(answer.status, operation.status, answer.text);
  });
}

/** What an example speaks of that it does not name by id. */
const prepared: Record<string, (world: World) => Promise<unknown>> = {
  async 'clicks.create'(world) {
    const { id: program_id } = await world.fixture('programs');
    await world.caller.post('/v1/partners', { program_id, email: 'ada@example.com', handle: 'ada' });
  },
};

function takesBody({ method, body }: Operation): boolean {
  return method !== 'GET' && Object.keys(fieldsOf(body).properties).length > 0;
}

/** The example, with the id of something of the world for each that it makes up. */
async function withRealIds(example: string, world: World): Promise<Json> {
  let text = example;
  for (const [sample, prefix] of example.matchAll(/sample_([a-z]+)_\w+/g)) {
    text = text.replaceAll(sample, (await world.fixture(pluralOf(prefix as string))).id);
  }
  return JSON.parse(text);
}

/** `partners` of `part`: read off the examples of what the API answers. */
function pluralOf(prefix: string): string {
  const found = resources.find((plural) => {
    const media = paths[`/v1/${plural}/{id}`].get?.responses[200].content['application/json'];
    return media?.example.id?.startsWith(`sample_${prefix}_`);
  });
  if (found === undefined) throw new Error(`Nothing in the API has ids that begin with ${prefix}_.`);
  return found;
}
