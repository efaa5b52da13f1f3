import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import t from 'tap';
import { command } from '../command_process.ts';
import { type Caller, encryption_key, eventually, type Json, sql, startRail } from '../harness.ts';
import { stablePort } from '../ports.ts';
import { spawnRail } from '../rail_process.ts';

const service = await startRail();
const environment = { DATABASE_URL: service.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };

interface Taken {
  method: string;
  url: string;
  headers: Record<string, string>;
  raw: Buffer;
}

type Answer = (taken: Taken, response: ServerResponse, nth: number) => void;

/** An application under development: it takes webhooks and answers as it likes. */
async function startApplication(answer: Answer): Promise<{ server: Server; port: number; taken: Taken[] }> {
  const taken: Taken[] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method, url, headers } = request as { method: string; url: string; headers: Record<string, string> };
    const one = { method, url, headers, raw: Buffer.concat(chunks) };
    taken.push(one);
    answer(one, response, taken.length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, port: (server.address() as AddressInfo).port, taken };
}

async function openProgram(): Promise<{ merchant: Caller; program_id: string; happen(): Promise<void> }> {
  const merchant = await service.organization();
  const program = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
  const { id: program_id } = await merchant.post('/v1/programs', program);
  let nth = 0;
  return {
    merchant,
    program_id,
    async happen() {
      await merchant.post('/v1/partners', { program_id, email: `partner${++nth}@partner.example.com` });
    },
  };
}

async function startForwarding(program_id: string, to: string, ...more: string[]) {
  const args = ['listen', '--json', '--program', program_id, '--events', 'affiliate.created,affiliate.updated'];
  const listening = spawnRail(t, [...args, '--forward-to', to, ...more], environment);
  const [, url, endpoint_id] = await listening.until(/ on (http\S+) as (whe_\w+)/);
  await listening.until(/Forwarding to/);
  const lines = (): Json[] =>
    listening
      .said()
      .stdout.split('\n')
      .slice(0, -1) // the last one has not ended
      .map((line) => JSON.parse(line));
  return { ...listening, url: url as string, endpoint_id: endpoint_id as string, lines };
}

/** Returns the attempts at an endpoint that Rail logged, in their order, once there are so many. */
async function attemptsAt(endpoint_id: string, count: number): Promise<Json[]> {
  const read = () =>
    service.query(sql`
      select a.status_code, a.response_body, a.error, d.status, d.attempt, d.next_attempt_at
      from webhooks.attempt a
      join webhooks.delivery d on d.organization_id = a.organization_id and d.id = a.delivery_id
      where d.endpoint_id = ${endpoint_id}
      order by a.at`);
  await eventually(async () => (await read()).length >= count, `${count} attempts`);
  return read();
}

t.test('passes webhooks on as they came, in their order, and answers what the application answered', async (t) => {
  const { merchant, program_id, happen } = await openProgram();
  const application = await startApplication((_, response, nth) => {
    const answer = () =>
      response.writeHead(nth === 2 ? 503 : 202, { 'Content-Type': 'text/plain' }).end(`taken ${nth}`);
    // The earlier ones take longer: whoever did not wait for them would overtake.
    setTimeout(answer, nth === 1 ? 300 : 0);
  });
  const to = `localhost:${application.port}/webhooks?from=rail`;
  const listening = await startForwarding(program_id, to, '--print-secret');
  const [, secret] = await listening.until(/signing secret.*: (whsec_\S+)/);
  for (let nth = 0; nth < 6; nth++) await happen();
  const attempts = await attemptsAt(listening.endpoint_id, 6);
  t.same(
    attempts.map(({ status_code, response_body, status }) => [status_code, response_body, status]),
    [1, 2, 3, 4, 5, 6].map((nth) => (nth === 2 ? [503, 'taken 2', 'pending'] : [202, `taken ${nth}`, 'delivered'])),
  );
  t.ok(attempts[1]?.next_attempt_at, 'what was not acknowledged is sent again');

  const events = await service.query<{ body: string }>(sql`
    select body from webhooks.event where program_id = ${program_id} and type = 'affiliate.created' order by position`);
  t.same(
    application.taken.map(({ raw }) => raw.toString()),
    events.map(({ body }) => body),
    'the exact bodies, in order',
  );
  for (const { method, url, headers, raw } of application.taken) {
    t.same([method, url, headers.host], ['POST', '/webhooks?from=rail', `localhost:${application.port}`]);
    const stripe = new Stripe('sk_test_unused');
    t.ok(stripe.webhooks.constructEvent(raw, headers['rail-signature'] as string, secret as string, 300));
    t.ok(new Webhook(secret as string).verify(raw.toString(), headers));
    for (const name of ['rail-event', 'rail-event-id', 'rail-delivery-id', 'rail-attempt', 'rail-request-id'])
      t.ok(headers[name], name);
    t.equal(headers['user-agent'], 'Rail-Webhooks/1.0');
    t.equal(headers['content-type'], 'application/json');
  }
  await eventually(() => listening.lines().length === 6, 'a line for each');
  t.same(
    listening.lines().map(({ signature, order, forwarded }) => [signature, order, forwarded.status, forwarded.error]),
    [1, 2, 3, 4, 5, 6].map((nth) => ['good', 'good', nth === 2 ? 503 : 202, null]),
  );

  const forged = { 'Rail-Signature': 't=1,v1=00', 'Rail-Delivery-Id': 'whd_forged', 'Rail-Event': 'affiliate.created' };
  t.equal((await fetch(listening.url, { method: 'POST', headers: forged, body: '{}' })).status, 400);
  t.equal(application.taken.length, 6, 'what is not verified goes nowhere');
  await eventually(() => listening.lines().length === 7, 'the line of the forged one');
  t.match(listening.lines().at(-1), { signature: 'wrong', forwarded: null });

  const { code, stderr } = await listening.stop('SIGINT');
  t.equal(code, 1);
  t.match(stderr, '7 received, 1 invalid. 6 forwarded, 1 of them not acknowledged.');
  t.equal((await merchant.get(`/v1/webhook_endpoints?program_id=${program_id}`)).data.length, 0);
});

t.test(
  'answers 502 while the application is away, follows no redirect, and is no less stopped by Ctrl-C',
  async (t) => {
    const { merchant, program_id, happen } = await openProgram();
    let hanging: Promise<unknown> | undefined;
    const application = await startApplication((_, response, nth) => {
      if (nth === 1) response.writeHead(302, { Location: '/elsewhere' }).end();
      else hanging = once(response, 'close');
    });
    const listening = await startForwarding(program_id, `http://127.0.0.1:${application.port}/`);
    t.notMatch(listening.said().stderr, 'whsec_', 'the secret is shown where it is asked for');
    await happen();
    t.match(await attemptsAt(listening.endpoint_id, 1), [{ status_code: 302, status: 'pending' }]);
    await happen();
    await eventually(() => hanging !== undefined, 'the second one');
    t.equal(application.taken[1]?.url, '/', 'the redirect was not followed');
    t.match(await listening.stop('SIGINT'), { code: 0 });
    await hanging;

    const away = await startForwarding(program_id, `http://127.0.0.1:${await stablePort()}/`);
    await happen();
    t.match(await attemptsAt(away.endpoint_id, 1), [{ status_code: 502, status: 'pending', attempt: 1 }]);
    await eventually(() => away.lines().length === 1, 'its line');
    t.match(away.lines(), [{ signature: 'good', faults: [], forwarded: { status: 502, error: 'ECONNREFUSED' } }]);
    t.match(await away.stop('SIGTERM'), { code: 0, stderr: /1 forwarded, 1 of them not acknowledged/ });
    t.equal((await merchant.get(`/v1/webhook_endpoints?program_id=${program_id}`)).data.length, 0);
  },
);

t.test('shows people what became of each', async (t) => {
  const { program_id, happen } = await openProgram();
  const application = await startApplication((_, response) => response.writeHead(204).end());
  const listening = spawnRail(
    t,
    ['listen', '--program', program_id, '--forward-to', `localhost:${application.port}`],
    environment,
  );
  await listening.until(new RegExp(`Forwarding to http://localhost:${application.port}/`));
  await happen();
  await listening.until(/affiliate\.created +✓ signature +✓ order +→ 204 in \d+ ms/);
  await listening.stop('SIGINT');
  t.match(await command(['listen', '--forward-to', 'ftp://localhost/'], environment), { code: 2, stderr: /http/ });
});

t.test('listens to the recruitment service of an organization', async (t) => {
  const { organization_id, post } = await service.organization();
  const listening = spawnRail(t, ['listen', '--json', '--recruitment', '--organization', organization_id], environment);
  const [, endpoint_id] = await listening.until(/ as (fwe_\w+)/);
  await post(`/recruitment/v1/webhook_endpoints/${endpoint_id}/ping`, { event_type: 'deal.agreed' });
  await listening.until(/"signature":"good".*\n/);
  const [line] = listening.said().stdout.split('\n');
  t.match(JSON.parse(line as string), { type: 'deal.agreed', order: 'good', faults: [], body: { version: 1 } });
});

t.test('refuses options of the other service', async (t) => {
  for (const [args, message] of [
    [['--recruitment', '--program', 'prg_1'], /Give --program or --recruitment, not both/],
    [['--test'], /options of --recruitment/],
    [['--recruitment', '--events', 'sale.created'], /Unknown event sale.created/],
    [['--recruitment', '--organization', 'org_1'], /There is no organization 'org_1'/],
  ] as const) {
    const { code, stderr } = await command(['listen', ...args], environment);
    t.not(code, 0);
    t.match(stderr, message);
  }
});
