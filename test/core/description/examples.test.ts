import t from 'tap';
import { program } from '../../../src/program/index.ts';
import { type Json, startRail, startReceiver } from '../../harness.ts';
import { resources, type Sample, send, World } from '../../samples.ts';

const { operations } = program;
const rail = await startRail();
const receiver = await startReceiver();
const { paths, components } = (await (await fetch(`${rail.address}/v1/openapi.json`)).json()) as Json;

/** Where an example says when, it means lately. */
const example_time = '2026-11-21T09:30:00.000Z';
const an_hour_ago = new Date(Date.now() - 3_600_000).toISOString();

for (const operation of operations) {
  t.test(`${operation.name}: the sample that /docs shows succeeds as it is`, async (t) => {
    const merchant = await rail.organization();
    const world = new World(merchant, receiver.url, await rail.key(merchant.organization_id), rail);
    await prepared[operation.name]?.(world);
    const route = paths[operation.path][operation.method.toLowerCase()];
    const { path, body: own_body } = await world.sample(operation);
    const { query, headers, body } = sampleOf(route);
    t.same(headers, {}, 'sends no header that nobody asked for');
    const sample = await withRealIds(JSON.stringify({ query, body }).replaceAll(example_time, an_hour_ago), world);
    // A report is on what was sent, and an example's on what never was.
    if (operation.upload) sample.body = own_body;
    const answer = await send(world.caller, operation, { path, ...sample } as Sample);
    t.equal(answer.status, operation.status, answer.text);
  });
}

/** The request that Scalar makes of an operation: what is required, and each optional parameter that has a value and is not disabled. */
function sampleOf({ parameters, requestBody }: Json): { query: Json; headers: Json; body: Json | undefined } {
  const sent = (parameters as Json[])
    .map((parameter) => (parameter.$ref ? components.parameters[parameter.$ref.split('/').at(-1)] : parameter))
    .map((parameter) => ({ ...parameter, sample: parameterSample(parameter) }) as Json)
    .filter(isSent);
  const those = (place: string) =>
    Object.fromEntries(
      sent.filter((parameter) => parameter.in === place).map(({ name, sample }) => [name, String(sample.value)]),
    );
  return {
    query: those('query'),
    headers: those('header'),
    body: requestBody?.content['application/json'].example,
  };
}

const parameterSample = ({ examples, example, schema }: Json): Json =>
  examples?.default ?? { value: example ?? schema.default ?? schema.enum?.[0] ?? schema.examples?.[0] };

const isSent = ({ in: place, required, sample }: Json): boolean => {
  if (typeof sample['x-disabled'] === 'boolean') return !sample['x-disabled'];
  return required || place === 'path' || (sample.value !== undefined && sample.value !== '' && sample.value !== null);
};

/** What an example speaks of that it does not name by id. */
const prepared: Record<string, (world: World) => Promise<unknown>> = {
  async 'clicks.create'(world) {
    const { id: program_id } = await world.fixture('programs');
    await world.caller.post('/v1/partners', { program_id, email: 'ada@example.com', handle: 'ada' });
  },
};

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
    const media = paths[`/v1/${plural}/{id}`]?.get?.responses[200].content['application/json'];
    return media?.example.id?.startsWith(`sample_${prefix}_`);
  });
  if (found === undefined) throw new Error(`Nothing in the API has ids that begin with ${prefix}_.`);
  return found;
}
