import pg from 'pg';
import t from 'tap';
import { newId } from '../../../src/core/values/id.ts';
import { type Caller, eventually, type Json, type Rail, sql, startRail, startReceiver } from '../../harness.ts';

const [alone, working] = await Promise.all([startRail({ worker: false }), startRail()]);

t.test('tells workers of events and jobs once they can be seen', async (t) => {
  const merchant = await alone.organization();
  const { program_id } = await openProgram(merchant, 'http://127.0.0.1:9/');
  const { heard } = await listen(t, alone);
  await merchant.post('/v1/clicks', {
    ...{ program_id, value: 'ada', landing_url: 'https://acme.example.com/', visitor_token: 'visitor-0001' },
  });
  // graphile-worker notifies too, of jobs whose tasks no worker has had yet.
  const told = () => heard.find(({ channel, payload }) => channel === 'jobs:insert' && payload?.includes('tasks'));
  await eventually(() => told() !== undefined, 'to be told of a job');
  const { tasks } = JSON.parse(told()?.payload ?? '') as { tasks: string[] };
  const jobs = await alone.query(sql`select from graphile_worker.jobs where task_identifier = any (${tasks})`);
  t.ok(tasks.length > 0 && jobs.length >= tasks.length);

  const before = heard.length;
  await merchant.post('/v1/partners', { program_id, email: 'bob@partner.example.com' });
  const events = () => heard.slice(before).filter(({ channel }) => channel === 'rail:events');
  await eventually(() => events().length > 0, 'to be told of an event');
  t.equal(events().length, 1);
  t.same(events()[0]?.seen, 'affiliate.created', 'it was committed before');
});

t.test('needs no notification where the process that commits delivers, and none to be told of at all', async (t) => {
  const merchant = await working.organization();
  const receiver = await startReceiver();
  const { program_id } = await openProgram(merchant, receiver.url);
  await receiver.until(1);
  const { heard } = await listen(t, working);
  await merchant.post('/v1/partners', { program_id, email: 'bob@partner.example.com' });
  await receiver.until(2);
  t.same(
    heard.filter(({ channel }) => channel === 'rail:events'),
    [],
  );

  const event = { id: newId('evt'), program_id, type: 'affiliate.created', livemode: true, body: '{"data":{}}' };
  await working.query(
    sql`select webhooks.write_events(${merchant.organization_id}, null, now(), ${JSON.stringify([event])}::json, 'whd')`,
  );
  await receiver.until(3);
  t.equal(receiver.received[2]?.headers['rail-event-id'], event.id, 'the sweep found it');
});

/** A program with a partner, of which an endpoint is told. */
async function openProgram(merchant: Caller, url: string): Promise<{ program_id: string; endpoint: Json }> {
  const fields = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
  const { id: program_id } = await merchant.post('/v1/programs', fields);
  const endpoint = await merchant.post('/v1/webhook_endpoints', {
    program_id,
    url,
    event_types: ['affiliate.created'],
  });
  await merchant.post('/v1/partners', { program_id, email: 'ada@partner.example.com', handle: 'ada' });
  return { program_id, endpoint };
}

interface Heard {
  channel: string;
  payload: string | undefined;
  /** The type of the last event that could be seen then. */
  seen: string | undefined;
}

async function listen(t: { teardown(work: () => unknown): void }, rail: Rail): Promise<{ heard: Heard[] }> {
  const heard: Heard[] = [];
  const client = new pg.Client(rail.url);
  await client.connect();
  t.teardown(() => client.end());
  client.on('notification', async ({ channel, payload }) => {
    const last = sql`select type from webhooks.event order by position desc limit 1`;
    const [event] = await rail.query<{ type: string }>(last);
    heard.push({ channel, payload, seen: event?.type });
  });
  await client.query('listen "rail:events"; listen "jobs:insert"');
  return { heard };
}
