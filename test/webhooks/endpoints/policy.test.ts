import sql from 'sql-template-tag';
import Stripe from 'stripe';
import t from 'tap';
import { z } from 'zod';
import { type Store, transaction } from '../../../src/core/postgres/transaction.ts';
import { newId } from '../../../src/core/values/id.ts';
import { program } from '../../../src/program/index.ts';
import { createEndpoint } from '../../../src/webhooks/endpoints/create_endpoint.ts';
import { eventType } from '../../../src/webhooks/events/catalogue.ts';
import { draftOf, eventWriter } from '../../../src/webhooks/events/event.ts';
import type { EventPolicy } from '../../../src/webhooks/events/policy.ts';
import { webhooksOf } from '../../../src/webhooks/operations.ts';
import { type Addressee, receiverOf } from '../../../src/webhooks/queue/send.ts';
import { eventually, startRail, startReceiver } from '../../harness.ts';

/**
 * As the recruitment service words it: other ids, another envelope, https alone, live and test endpoints, the last 50 in the log. Its schemas
 * have names of their own: those of a process are all in one registry, from which descriptions take them.
 */
const recruitment: EventPolicy = {
  product: 'recruitment',
  path: '/recruitment/v1',
  namespace: 'strict_',
  catalogue: {
    'do_not_contact.added': eventType(
      'A prospect was marked Do not contact.',
      { prospect_id: z.string(), reason: z.string().nullable() },
      { prospect_id: 'sample_fdi_1', reason: null },
    ),
  },
  id_prefix: 'fev',
  delivery_prefix: 'fwd',
  endpoint_prefix: 'fwe',
  subject: null,
  owner: null,
  envelope: ({ id, type, created_at, data, livemode }) => ({ id, type, version: 1, created_at, livemode, data }),
  envelope_fields: { version: z.literal(1), livemode: z.boolean() },
  envelope_doc: '',
  https_only: true,
  endpoint_types: null,
  chatText: null,
  retries: 'every_minute',
  names_requests: false,
  lists_all: true,
  requireIncluded: null,
  most_in_log: 50,
};

/** The same for receivers of tests, which listen on http. */
const lax: EventPolicy = { ...recruitment, namespace: 'lax_', https_only: false };
const draft = draftOf('recruitment', recruitment.catalogue);
const told = (organization_id: string, prospect_id: string) =>
  draft('do_not_contact.added', organization_id, { prospect_id, reason: null });

const rail = await startRail();
const store: Store = { database: rail.store.database, writeEvents: eventWriter([program.events, recruitment]) };
const { services } = rail;

async function openTeam() {
  const { organization_id } = await rail.organization();
  const within = <T>(work: Parameters<typeof transaction<T>>[2]) =>
    transaction(store, { organization_id, request_id: newId('req') }, work);
  return {
    organization_id,
    within,
    tell: (prospect_id: string, livemode: boolean) =>
      within(async (tx) => {
        tx.emit({ ...told(organization_id, prospect_id), livemode });
      }),
    listen: (url: string, livemode: boolean) =>
      within((tx) => {
        const type = livemode ? 'live' : 'test';
        return createEndpoint(tx, services, lax, { subject_id: organization_id, url, type });
      }),
  };
}

t.test('tells events of another product with its ids and its envelope, signed the same way', async (t) => {
  const receiver = await startReceiver();
  const team = await openTeam();
  const { id: endpoint_id, secret } = await team.listen(receiver.url, true);
  await team.tell('fdi_1', true);
  await receiver.until(1);
  const [got] = receiver.received;
  t.match(got?.body.id, /^fev_[0-9a-z]{26}$/);
  t.same(Object.keys(got?.body ?? {}), ['id', 'type', 'version', 'created_at', 'livemode', 'data']);
  t.match(got?.body, {
    type: 'do_not_contact.added',
    version: 1,
    livemode: true,
    data: { prospect_id: 'fdi_1', reason: null },
  });
  t.match(got?.headers['rail-delivery-id'], /^fwd_[0-9a-z]{26}$/);
  t.ok(
    Stripe.webhooks.constructEvent(got?.raw as string, got?.headers['rail-signature'] as string, secret as string, 300),
  );
  await eventually(
    async () =>
      (
        await rail.query(
          sql`select 1 from webhooks.delivery where endpoint_id = ${endpoint_id} and status = 'delivered'`,
        )
      ).length === 1,
    'the log',
  );
});

t.test('gives a test endpoint the events of tests alone, and a live one none of them', async (t) => {
  const [live, test] = [await startReceiver(), await startReceiver()];
  const team = await openTeam();
  await team.listen(live.url, true);
  await team.listen(test.url, false);
  for (const [prospect_id, livemode] of [
    ['fdi_1', false],
    ['fdi_2', true],
    ['fdi_3', false],
    ['fdi_4', true],
  ] as const) {
    await team.tell(prospect_id, livemode);
  }
  await Promise.all([live.until(2), test.until(2)]);
  const prospects = ({ received }: typeof live) => received.map(({ body }) => [body.data.prospect_id, body.livemode]);
  t.same(prospects(live), [
    ['fdi_2', true],
    ['fdi_4', true],
  ]);
  t.same(prospects(test), [
    ['fdi_1', false],
    ['fdi_3', false],
  ]);
});

t.test(
  'refuses http where a product is for https alone: when it is saved, and at a send if it got there all the same',
  async (t) => {
    const receiver = await startReceiver();
    const team = await openTeam();
    const fields = { subject_id: team.organization_id, url: receiver.url };
    const public_only = { ...services, allow_private_addresses: false };
    await t.rejects(
      team.within((tx) => createEndpoint(tx, public_only, recruitment, fields)),
      {
        code: 'address_not_allowed',
        message: 'The URL must begin with https://.',
      },
    );
    await t.rejects(
      team.within((tx) => createEndpoint(tx, public_only, recruitment, { ...fields, url: 'ftp://hooks.example.com/' })),
      { message: 'The URL must begin with https://.' },
    );
    const { id } = await team.within((tx) => createEndpoint(tx, services, recruitment, fields));
    const [stored] = await rail.query<Addressee>(sql`
      select id as endpoint_id, type, url, https_only, secret, previous_secret from webhooks.endpoint where id = ${id}`);
    t.match(receiverOf(stored as Addressee, public_only), {
      target: undefined,
      refusal: 'The URL must begin with https://.',
    });
    await team.tell('fdi_1', true);
    await receiver.until(1); // private addresses are allowed here, and http with them
  },
);

t.test("shows an endpoint's last 50 deliveries, and its test events in the product's envelope", async (t) => {
  const receiver = await startReceiver();
  const team = await openTeam();
  const { id } = await team.listen(receiver.url, true);
  await team.within(async (tx) => {
    for (let nth = 0; nth < 60; nth++) {
      tx.emit(told(team.organization_id, `fdi_${nth}`));
    }
  });
  await receiver.until(60);
  const operations = new Map(webhooksOf(recruitment).map((each) => [each.name, each]));
  // biome-ignore lint/suspicious/noExplicitAny: an operation is run as the API runs it
  const call = (name: string, of: object): Promise<any> =>
    team.within((tx) =>
      // biome-ignore lint/suspicious/noExplicitAny: the same
      (operations.get(name) as any).run({ tx, params: { id }, services, caller: { scopes: ['*'] }, ...of }),
    );
  const page = await call('strict_webhook_endpoints.deliveries', {
    query: { limit: 100, expand: [], include: [] },
  });
  t.equal(page.data.length, 50);
  t.equal(page.total_count, 50);
  const ping = await call('strict_webhook_endpoints.ping', { body: {} });
  t.match(ping.event_id, /^evt_test_/);
  await receiver.until(61);
  t.match(receiver.received[60]?.body, {
    id: ping.event_id,
    version: 1,
    livemode: false,
    data: { prospect_id: 'sample_fdi_1' },
  });
});
