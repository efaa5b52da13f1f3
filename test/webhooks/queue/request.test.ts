import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { newId } from '../../../src/core/values/id.ts';
import { response, startRawReceiver } from '../../core/net/raw_receiver.ts';
import { eventually, type Json, startRail } from '../../harness.ts';
import { type ListeningShop, openListeningShop } from '../../shop.ts';

const rail = await startRail();
const stripe = new Stripe('sk_test_unused');

t.test('a request has the headers of the specification, and no others but those of HTTP', async (t) => {
  const receiver = await startRawReceiver((socket) => socket.write(response(200)));
  const { endpoint, happen, attempted } = await openListeningShop(rail, receiver.url);
  const { headers: answer } = await happen();
  const [delivery] = (await attempted(1)) as [Json];
  const { line, headers, body } = parse(receiver.requests[0]);
  const event = JSON.parse(body);
  const signature = headers['rail-signature'] as string;
  const [, seconds] = /^t=(\d+),v1=[0-9a-f]{64}$/.exec(signature) as RegExpExecArray;

  t.equal(line, 'POST /hook HTTP/1.1');
  t.same(headers, {
    host: `127.0.0.1:${receiver.port}`,
    connection: 'keep-alive',
    'content-length': String(Buffer.byteLength(body)),
    'content-type': 'application/json',
    'user-agent': 'Rail-Webhooks/1.0',
    'rail-signature': signature,
    'rail-event': 'affiliate.created',
    'rail-event-id': event.id,
    'rail-delivery-id': delivery.id,
    'rail-attempt': '1',
    'rail-request-id': answer['rail-request-id'],
    'webhook-id': event.id,
    'webhook-timestamp': seconds,
    'webhook-signature': headers['webhook-signature'],
  });
  t.equal(
    headers['rail-signature'],
    stripe.webhooks.generateTestHeaderString({ payload: body, secret: endpoint.secret, timestamp: Number(seconds) }),
  );
  t.equal(
    headers['webhook-signature'],
    new Webhook(endpoint.secret).sign(event.id, new Date(Number(seconds) * 1_000), body),
  );
  t.match(event, { id: delivery.event_id, type: 'affiliate.created', request: { id: answer['rail-request-id'] } });
  t.same(Object.keys(event).toSorted(), ['created_at', 'data', 'id', 'request', 'type']);
});

t.test('signs anew what was signed ahead when its time comes in another second', async (t) => {
  const answered_ms: number[] = [];
  const receiver = await startRawReceiver((socket) =>
    setTimeout(() => {
      answered_ms.push(Date.now());
      socket.write(response(200));
    }, 1_100),
  );
  const { endpoint, happen, attempted } = await openListeningShop(rail, receiver.url);
  for (let nth = 0; nth < 4; nth++) await happen();
  await attempted(4);
  for (const [nth, request] of receiver.requests.slice(0, 4).entries()) {
    const { headers, body } = parse(request);
    const at_s = Number(headers['webhook-timestamp']);
    if (nth > 0)
      t.ok(at_s >= Math.floor((answered_ms[nth - 1] as number) / 1_000), `${at_s} is the time of request ${nth}`);
    t.ok(stripe.webhooks.constructEvent(body, headers['rail-signature'] as string, endpoint.secret));
    t.ok(new Webhook(endpoint.secret).verify(body, headers as Record<string, string>));
  }
});

t.test('verifies by the old secret, the new one and both while a rotation lasts', async (t) => {
  const receiver = await startRawReceiver((socket) => socket.write(response(200)));
  const { merchant, endpoint, happen, attempted } = await openListeningShop(rail, receiver.url);
  const { secret } = await merchant.post(`/v1/webhook_endpoints/${endpoint.id}/rotate_secret`);
  await happen();
  await attempted(1);
  const { headers, body } = parse(receiver.requests[0]);
  t.match(headers['rail-signature'], /^t=\d+,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/);
  t.match(headers['webhook-signature'], /^v1,\S{44} v1,\S{44}$/);
  const fresh = { ...headers, 'webhook-signature': headers['webhook-signature']?.split(' ')[0] as string };
  t.ok(new Webhook(secret).verify(body, fresh), 'the new one is first');
  for (const key of [endpoint.secret, secret]) {
    t.ok(stripe.webhooks.constructEvent(body, headers['rail-signature'] as string, key, 300));
    t.ok(new Webhook(key).verify(body, headers));
    t.throws(() => stripe.webhooks.constructEvent(`${body} `, headers['rail-signature'] as string, key, 300));
    t.throws(() => new Webhook(key).verify(`${body} `, headers));
  }
});

t.test('names no request where none caused the event, and none in a test', async (t) => {
  const receiver = await startRawReceiver((socket) => socket.write(response(200)));
  const { merchant, program_id, endpoint, attempted } = await openListeningShop(rail, receiver.url);
  await tell({ merchant, program_id }, null, 'ada');
  await attempted(1);
  await merchant.post(`/v1/webhook_endpoints/${endpoint.id}/ping`);
  await attempted(2);
  const [nobodys, ...tests] = receiver.requests.map(parse);
  t.notOk('rail-request-id' in (nobodys?.headers ?? {}));
  t.same(JSON.parse(nobodys?.body ?? '').request, { id: null });
  t.ok(tests.length > 0);
  for (const { headers, body } of tests) {
    t.notOk('rail-request-id' in headers);
    t.notOk('request' in JSON.parse(body));
    t.match(headers['rail-event-id'], /^evt_test_/);
  }
});

t.test('sends the same bytes at every attempt and replay, which are those of the log', async (t) => {
  const receiver = await startRawReceiver((socket, nth) => socket.write(response(nth === 0 ? 500 : 200)));
  const { merchant, program_id, attempted } = await openListeningShop(rail, receiver.url);
  const handle = 'Zoë \u2028 世界 <&> 🙂';
  await tell({ merchant, program_id }, 'run_1', handle);
  const [failed] = (await attempted(1)) as [Json];
  t.match(failed, { status: 'pending', attempts: [{ status_code: 500 }] });
  await rail.tick('webhooks/enqueue_due_retries', failed.next_attempt_at);
  const read = () => merchant.get(`/v1/webhook_deliveries/${failed.id}`);
  await eventually(async () => (await read()).status === 'delivered', 'the second attempt');
  const delivered = await read();
  t.same(
    delivered.attempts.map(({ attempt, status_code }: Json) => [attempt, status_code]),
    [
      [1, 500],
      [2, 200],
    ],
  );
  const replayed = await merchant.post(`/v1/webhook_deliveries/${failed.id}/replay`);
  await attempted(2);

  const [first, second, third] = receiver.requests.map(parse) as [Parsed, Parsed, Parsed];
  t.equal(JSON.parse(first.body).data.handle, handle, 'in UTF-8');
  for (const { body } of [second, third]) t.equal(body, first.body);
  for (const { request_body } of [failed, delivered, replayed]) t.equal(request_body, first.body);
  const ids = ({ headers }: Parsed) => [headers['rail-event-id'], headers['rail-delivery-id'], headers['rail-attempt']];
  t.same([first, second, third].map(ids), [
    [failed.event_id, failed.id, '1'],
    [failed.event_id, failed.id, '2'],
    [failed.event_id, replayed.id, '1'],
  ]);
});

/** Tells of an event by itself, caused by whatever is said. */
async function tell(
  { merchant, program_id }: Pick<ListeningShop, 'merchant' | 'program_id'>,
  cause: string | null,
  handle: string,
) {
  const partner_id = newId('part');
  const data = { partner_id, email: 'ada@partner.example.com', handle, status: 'active', group_id: null };
  const { organization_id } = merchant;
  await transaction(rail.store, { organization_id, request_id: cause }, async (tx) =>
    tx.emit({ product: 'program', type: 'affiliate.created', subject_id: program_id, owner_id: partner_id, data }),
  );
}

interface Parsed {
  line: string;
  headers: Record<string, string>;
  body: string;
}

function parse(request = ''): Parsed {
  const end = request.indexOf('\r\n\r\n');
  const [line = '', ...lines] = request.slice(0, end).split('\r\n');
  const headers = lines.map((each) => [
    each.slice(0, each.indexOf(':')).toLowerCase(),
    each.slice(each.indexOf(':') + 2),
  ]);
  return { line, headers: Object.fromEntries(headers), body: request.slice(end + 4) };
}
