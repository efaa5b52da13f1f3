import type { Operation } from '../src/core/resource/operation.ts';
import { products } from '../src/products.ts';
import type { Json, Rail } from './harness.ts';
import { resourceOf, type Sample, type World } from './samples.ts';

/** The requests that /docs shows, as they are sent from there: with ids of a world in place of those that the documentation makes up. */
export interface ExampleRequests {
  /** @param own of that world: says on which object it acts */
  of(operation: Operation, world: World, own: Sample): Promise<Sample>;
  /** The headers that the sample of an operation sends by itself. */
  headersOf(operation: Operation): Json;
}

export async function readExamples(rail: Rail): Promise<ExampleRequests> {
  const documents = await Promise.all(
    products.map(
      async ({ events }) => (await fetch(`${rail.address}${events.path}/openapi.json`)).json() as Promise<Json>,
    ),
  );
  const routes = documents.flatMap(({ paths, components }) =>
    Object.entries<Json>(paths).flatMap(([path, methods]) =>
      Object.values<Json>(methods).map((route) => ({ ...route, path, shared: components.parameters }) as Json),
    ),
  );
  const routeOf = ({ name }: Operation): Json => routes.find(({ operationId }) => operationId === name) as Json;
  return {
    headersOf: (operation) => sampleOf(routeOf(operation)).headers,
    async of(operation, world, { path, body: own_body }) {
      await prepared[operation.name]?.(world);
      const { query, body } = sampleOf(routeOf(operation));
      const sample = await withRealIds(atTimesOfToday(JSON.stringify({ query, body })), world, routes);
      // A report is on what was sent, and an example's on what never was.
      if (operation.upload) sample.body = own_body;
      for (const field of of_servers[operation.name] ?? []) sample.body[field] = own_body?.[field];
      return { path, query: sample.query, body: sample.body };
    },
  };
}

/** Moves the times of examples to an hour ago, or to a month from now where something ends. */
const hour_ms = 3_600_000;
const example_times = {
  '2026-11-21T09:30:00.000Z': new Date(Date.now() - hour_ms).toISOString(),
  '2026-12-21T09:30:00.000Z': new Date(Date.now() + 30 * 24 * hour_ms).toISOString(),
};

function atTimesOfToday(text: string): string {
  return Object.entries(example_times).reduce((changed, [time, now]) => changed.replaceAll(time, now), text);
}

/** Fields of examples that hold a login at somebody else's server, which the service would try: they are those of servers on loopback. */
const of_servers: Record<string, string[]> = {
  // A key gives no scope that it lacks.
  'api_keys.create': ['scopes'],
  'api_keys.update': ['scopes'],
  'inboxes.create': ['smtp', 'imap'],
  'search_providers.put': ['credentials'],
  'processors.put': ['credentials'],
};

/** The request that Scalar makes of an operation: what is required, and each optional parameter that has a value and is not disabled. */
function sampleOf({ parameters, requestBody, shared }: Json): { query: Json; headers: Json; body: Json | undefined } {
  const sent = (parameters as Json[])
    .map((parameter) => (parameter.$ref ? shared[parameter.$ref.split('/').at(-1)] : parameter))
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

/** Creates the objects that an example mentions without naming them by id. */
const prepared: Record<string, (world: World) => Promise<unknown>> = {
  async 'clicks.create'(world) {
    const { id: program_id } = await world.fixture('programs');
    await world.caller.post('/v1/partners', { program_id, email: 'ada@example.com', handle: 'ada' });
  },
  async 'campaigns.preview'(world) {
    const { id } = await world.fixture('recruitment_prospects');
    await world.caller.post(`/recruitment/v1/prospects/${id}/emails`, { email: 'ada@baking.example.com' });
  },
};

/** The example, with the id of something of the world for each that it makes up. */
async function withRealIds(example: string, world: World, routes: Json[]): Promise<Json> {
  let text = example;
  for (const [sample, prefix] of example.matchAll(/sample_([a-z]+)_\w+/g)) {
    text = text.replaceAll(sample, (await world.fixture(pluralOf(prefix as string, routes))).id);
  }
  return JSON.parse(text);
}

/** `partners` of `part`: read off the examples of what the API answers. */
function pluralOf(prefix: string, routes: Json[]): string {
  const found = routes.find(({ path, responses }) => {
    if (!/\/v1\/[a-z_]+\/\{id\}$/.test(path)) return false;
    const media = responses[200]?.content['application/json'];
    return media?.example.id?.startsWith(`sample_${prefix}_`);
  });
  if (found === undefined) throw new Error(`Nothing in the API has ids that begin with ${prefix}_.`);
  return resourceOf(found.path);
}
