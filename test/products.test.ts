import type { AddressInfo } from 'node:net';
import t from 'tap';
import { z } from 'zod';
import { buildApi } from '../src/api.ts';
import { createKey } from '../src/core/access/api_key.ts';
import { type Store, transaction } from '../src/core/postgres/transaction.ts';
import { products } from '../src/products.ts';
import { event } from '../src/program/events/event.ts';
import { eventType } from '../src/webhooks/events/catalogue.ts';
import { draftOf, eventWriter } from '../src/webhooks/events/event.ts';
import type { EventPolicy } from '../src/webhooks/events/policy.ts';
import { webhooksOf } from '../src/webhooks/operations.ts';
import type { Product } from '../src/webhooks/product.ts';
import { type Caller, callerOf, closeApi, type Json, log, patient_api, startRail, startReceiver } from './harness.ts';

const catalogue = {
  'note.added': eventType(
    'A note was added.',
    { note_id: z.string().describe('The note.') },
    { note_id: 'sample_not_1' },
  ),
};
const events: EventPolicy = {
  product: 'notes',
  path: '/notes/v1',
  namespace: 'notes_',
  catalogue,
  id_prefix: 'nev',
  delivery_prefix: 'nwd',
  endpoint_prefix: 'nwe',
  subject: null,
  owner: null,
  envelope: ({ id, type, created_at, data, livemode }) => ({ id, type, version: 1, created_at, livemode, data }),
  envelope_fields: {
    version: z.literal(1).describe('The version of the payload.'),
    livemode: z.boolean().describe('False for a test event.'),
  },
  envelope_doc: '`livemode` is false for a test event.',
  https_only: false,
  endpoint_types: null,
  chatText: null,
  retries: 'half_hourly',
  names_requests: true,
  lists_all: true,
  requireIncluded: null,
  most_in_log: 50,
};
const notes: Product = {
  name: 'notes',
  title: 'Notes',
  events,
  loadApi: async () => ({
    summary: 'Notes of an organization.',
    guide: 'Notes are added.',
    test_keys: 'A test key may do nothing.',
    examples: { records: {}, operations: {}, event_times: {}, values: {} },
    operations: webhooksOf(events),
    scopes: [],
  }),
  ...{ schedules: [], encrypted: [], audits: [] },
};
const noteAdded = draftOf('notes', catalogue);

const rail = await startRail();
const store: Store = {
  database: rail.store.database,
  writeEvents: eventWriter([...products.map((product) => product.events), events]),
};
const app = await buildApi({
  store,
  services: rail.services,
  log,
  products: [...products, notes],
  limits: patient_api,
});
await app.listen({ port: 0, host: '127.0.0.1' });
t.teardown(() => closeApi(app));
const address = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;

async function openOrganization(scopes = ['*']): Promise<Caller> {
  const { organization_id } = await rail.organization();
  const { secret } = await createKey(store.database, { organization_id, name: 'test', mode: 'live', scopes });
  return callerOf(address, secret, organization_id);
}

const documentAt = async (path: string): Promise<Json> => (await fetch(address + path)).json() as Promise<Json>;

t.test('a product is described at its own path, with its own operations and events alone', async (t) => {
  const [program, other] = [await documentAt('/v1/openapi.json'), await documentAt('/notes/v1/openapi.json')];
  t.ok(Object.keys(program.paths).every((path) => path.startsWith('/v1/')));
  t.ok(Object.keys(other.paths).every((path) => path.startsWith('/notes/v1/')));
  t.notOk('note.added' in program.webhooks);
  t.same(Object.keys(other.webhooks), ['note.added']);
  t.equal(other.info.title, 'Notes');
  t.ok(other.components.schemas.NotesWebhookEndpoint.properties.url);
  t.notOk('program_id' in other.components.schemas.NotesWebhookEndpoint.properties);
  t.same(other.webhooks['note.added'].post.requestBody.content['application/json'].example, {
    ...{ id: 'sample_nev_01kap3b6n8f2v9w4x7y0z1a2b3', type: 'note.added', version: 1 },
    ...{ created_at: '2026-11-21T09:30:00.000Z', livemode: true, data: { note_id: 'sample_not_1' } },
  });
  t.match(await (await fetch(`${address}/notes/llms.txt`)).text(), '/notes/v1/webhook_endpoints');
});

t.test('events of two products in one transaction reach the endpoints of each, and no other', async (t) => {
  const caller = await openOrganization();
  const [of_program, of_notes] = [await startReceiver(), await startReceiver()];
  const { id: program_id } = await caller.post('/v1/programs', {
    ...{ name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' },
  });
  await caller.post('/v1/webhook_endpoints', { program_id, url: of_program.url });
  await caller.post('/notes/v1/webhook_endpoints', { url: of_notes.url });
  const opening = { organization_id: caller.organization_id, request_id: null };
  await transaction(store, opening, async (tx) => {
    tx.emit(noteAdded('note.added', tx.organization_id, { note_id: 'not_1' }));
    tx.emit(event('affiliate.deleted', { program_id }, { partner_id: 'part_1' }));
    tx.emit(noteAdded('note.added', tx.organization_id, { note_id: 'not_2' }));
  });
  await Promise.all([of_program.until(1), of_notes.until(2)]);
  t.same(
    of_notes.received.map(({ body }) => body.data),
    [{ note_id: 'not_1' }, { note_id: 'not_2' }],
  );
  t.match(of_notes.received[0]?.body.id, /^nev_/);
  t.match(of_notes.received[0]?.headers['rail-delivery-id'], /^nwd_/);
  t.same(
    of_program.received.map(({ body }) => [body.id.slice(0, 4), body.type]),
    [['evt_', 'affiliate.deleted']],
  );
});

t.test('an endpoint of one product is none of another', async (t) => {
  const caller = await openOrganization();
  const receiver = await startReceiver();
  const { id } = await caller.post('/notes/v1/webhook_endpoints', { url: receiver.url });
  t.match(id, /^nwe_/);
  t.equal((await caller.request('GET', `/v1/webhook_endpoints/${id}`)).status, 404);
  t.equal((await caller.request('DELETE', `/v1/webhook_endpoints/${id}`)).status, 404);
  const { data } = await caller.get('/notes/v1/webhook_endpoints');
  t.same(
    data.map((endpoint: Json) => endpoint.id),
    [id],
  );
  const { id: delivery_id } = await caller.post(`/notes/v1/webhook_endpoints/${id}/ping`);
  t.match(delivery_id, /^nwd_/);
  await receiver.until(1);
  t.match(receiver.received[0]?.body, { type: 'note.added', livemode: false, version: 1 });
  t.equal((await caller.request('GET', `/v1/webhook_deliveries/${delivery_id}`)).status, 404);
  t.equal((await caller.request('GET', `/notes/v1/webhook_deliveries/${delivery_id}`)).status, 200);
});

t.test("a product's webhooks need scopes of their own", async (t) => {
  const { request } = await openOrganization(['webhooks:read']);
  const refused = await request('GET', '/notes/v1/webhook_endpoints');
  t.match(refused, { status: 403, body: { error: { param: 'notes_webhooks:read' } } });
});
