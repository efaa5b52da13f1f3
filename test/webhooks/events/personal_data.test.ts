import t, { type Test } from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { newId } from '../../../src/core/values/id.ts';
import { catalogue } from '../../../src/program/events/catalogue.ts';
import { catalogue as recruitment } from '../../../src/recruitment/events/catalogue.ts';
import { event as recruitmentEvent } from '../../../src/recruitment/events/event.ts';
import type { Catalogue } from '../../../src/webhooks/events/catalogue.ts';
import { draftOf } from '../../../src/webhooks/events/event.ts';
import { type Caller, eventually, type Json, type Received, startRail, startReceiver } from '../../harness.ts';
import { openShop } from '../../shop.ts';

const rail = await startRail();
const event = draftOf('program', catalogue, 'partner_id');

const emit = ({ organization_id }: Caller, drafts: ReturnType<typeof event>[]) =>
  transaction(rail.store, { organization_id, request_id: newId('req') }, async (tx) => {
    for (const draft of drafts) tx.emit(draft);
  });

/** The delivery log of an endpoint, in the order of delivery, once all of it is delivered. */
async function logOf(caller: Caller, path: string, count: number): Promise<Json[]> {
  let log: Json[] = [];
  await eventually(async () => {
    log = (await caller.get(`${path}/deliveries?limit=100`)).data.reverse();
    return log.length === count && log.every(({ status }) => status === 'delivered');
  }, `${count} deliveries`);
  return log;
}

/** Compares the events that endpoints of both kinds receive: the same keys, and null where the catalogue says personal. */
function compare(t: Test, known: Catalogue, whole: Received[], without: Received[]): void {
  t.equal(without.length, whole.length);
  for (const [nth, { raw, body }] of without.entries()) {
    const { body: full } = whole[nth] as Received;
    const { data, ...envelope } = full;
    t.match(body, envelope);
    t.same(Object.keys(body), Object.keys(full), body.type);
    t.same(Object.keys(body.data), Object.keys(data), body.type);
    t.notMatch(raw, /@|%40/, body.type);
    for (const [field, value] of Object.entries(body.data)) {
      if (known[body.type]?.personal.includes(field)) t.equal(value, null, `${body.type} ${field}`);
      else if (!JSON.stringify(data[field]).includes('@')) t.same(value, data[field], `${body.type} ${field}`);
    }
  }
}

t.test(
  'an endpoint without personal data receives all keys of every type, and nothing that identifies a person',
  async (t) => {
    const { merchant, program_id, endpoint } = await openShop(rail);
    const [whole, without] = [await startReceiver(), await startReceiver()];
    await endpoint(whole.url);
    const { id, personal_data } = await endpoint(without.url, { personal_data: false });
    t.equal(personal_data, false);
    const types = Object.keys(catalogue) as (keyof typeof catalogue)[];
    const reason = 'Ask ada@partner.example.com, "at once"\nby mailto:ada%40partner.example.com';
    await emit(merchant, [
      ...types.map((type) => event(type, program_id, catalogue[type].example as never)),
      event('affiliate.updated', program_id, { ...catalogue['affiliate.updated'].example, reason } as never),
    ]);
    const all = await whole.until(types.length + 1);
    const received = await without.until(types.length + 1);
    compare(t, catalogue, all, received);
    t.equal(received.at(-1)?.body.data.reason, 'Ask hidden, "at once"\nby mailto:hidden');

    const sent = new Map(received.map(({ raw, body }) => [body.id, raw]));
    const log = await logOf(merchant, `/v1/webhook_endpoints/${id}`, sent.size);
    for (const one of log) t.equal(one.request_body, sent.get(one.event_id), 'the log shows what was sent');
    const { id: delivery_id, event_id } = log[0] as Json;
    await merchant.post(`/v1/webhook_deliveries/${delivery_id}/replay`);
    await merchant.post(`/v1/webhook_endpoints/${id}/ping`, { event_type: 'affiliate.created' });
    const [replayed, test_event] = (await without.until(sent.size + 2)).slice(sent.size) as [Received, Received];
    t.equal(replayed.raw, sent.get(event_id));
    t.match(test_event.body, { type: 'affiliate.created', data: { email: null, handle: 'ada' } });
  },
);

t.test('retries send the same bytes, and a postback without personal data receives none either', async (t) => {
  const { merchant, program_id, partner, endpoint } = await openShop(rail);
  const receiver = await startReceiver((_, nth) => (nth === 1 ? 500 : 200));
  const { id: partner_id } = await partner();
  const { id } = await endpoint(receiver.url, { partner_id, personal_data: false });
  const data = { ...catalogue['referral.created'].example, partner_id, landing_url: 'https://acme.example.com/?u=ada' };
  await emit(merchant, [event('referral.created', program_id, data as never)]);
  await receiver.until(1);
  let delivery: Json = {};
  await eventually(async () => {
    [delivery] = (await merchant.get(`/v1/webhook_endpoints/${id}/deliveries`)).data;
    return delivery.attempt === 1;
  }, 'the failed attempt');
  await merchant.post(`/v1/webhook_deliveries/${delivery.id}/replay`);
  const [failed, again] = (await receiver.until(2)) as [Received, Received];
  t.equal(again.raw, failed.raw);
  t.equal(failed.body.data.landing_url, null);
});

t.test('the same for the recruitment service', async (t) => {
  const merchant = await rail.organization();
  const path = '/recruitment/v1/webhook_endpoints';
  const [whole, without] = [await startReceiver(), await startReceiver()];
  await merchant.post(path, { url: whole.url });
  const { id } = await merchant.post(path, { url: without.url, personal_data: false });
  const types = Object.keys(recruitment) as (keyof typeof recruitment)[];
  await emit(
    merchant,
    types.map((type) => recruitmentEvent(type, merchant.organization_id, recruitment[type].example as never)),
  );
  compare(t, recruitment, await whole.until(types.length), await without.until(types.length));
  t.equal((await logOf(merchant, `${path}/${id}`, Math.min(types.length, 50))).length, Math.min(types.length, 50));
});

t.test('personal data is sent unless an endpoint says otherwise, and that never changes', async (t) => {
  const { merchant, endpoint } = await openShop(rail);
  const { id, personal_data } = await endpoint('http://127.0.0.1:9/');
  t.equal(personal_data, true);
  const { status } = await merchant.request('PATCH', `/v1/webhook_endpoints/${id}`, { personal_data: false });
  t.equal(status, 400);
});
