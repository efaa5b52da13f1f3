import { once } from 'node:events';
import { createServer } from 'node:http';
import { registerHooks } from 'node:module';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { setTracer } from '../../src/core/values/trace.ts';
import { startTracing } from '../../src/tracing.ts';
import { command } from '../command_process.ts';
import { encryption_key, eventually, type Json, sql, startRail, startReceiver } from '../harness.ts';

interface Span {
  name: string;
  trace_id: string;
  span_id: string;
  parent_id: string;
  service: string;
  attributes: Record<string, string | number>;
}

/** Takes what OpenTelemetry sends (OTLP over HTTP, as JSON). */
const spans: Span[] = [];
const asked: string[] = [];
const textOrNumber = ({ stringValue, intValue }: Json): string | number => stringValue ?? Number(intValue);
const attributesOf = (list: Json[] = []) =>
  Object.fromEntries(list.map(({ key, value }) => [key, textOrNumber(value)]));
const collector = createServer(async (request, response) => {
  asked.push(request.url as string);
  const { resourceSpans = [] } = JSON.parse(await text(request)) as Json;
  for (const { resource, scopeSpans } of resourceSpans)
    for (const { name, traceId, spanId, parentSpanId = '', attributes } of scopeSpans.flatMap(
      ({ spans }: Json) => spans,
    ))
      spans.push({
        ...{ name, trace_id: traceId, span_id: spanId, parent_id: parentSpanId },
        ...{
          service: attributesOf(resource.attributes)['service.name'] as string,
          attributes: attributesOf(attributes),
        },
      });
  response.setHeader('Content-Type', 'application/json').end('{}');
});
collector.listen(0, '127.0.0.1');
await once(collector, 'listening');
t.teardown(() => collector.close());
const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;

// The libraries read these themselves.
process.env.OTEL_EXPORTER_OTLP_PROTOCOL = 'http/json';
process.env.OTEL_EXPORTER_OTLP_ENDPOINT = endpoint;
process.env.OTEL_BSP_SCHEDULE_DELAY = '100';
const hooks = registerHooks({
  resolve(specifier, context, next) {
    if (specifier === '@fastify/otel') throw Object.assign(new Error('none'), { code: 'ERR_MODULE_NOT_FOUND' });
    return next(specifier, context);
  },
});
const wanted = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SERVICE_NAME: undefined };
const refusal = await startTracing(wanted, 'start').catch(({ message }) => message);
hooks.deregister();
const end = await startTracing(wanted, 'start');
const rail = await startRail();

t.test('a request, its jobs and its deliveries are one trace', async (t) => {
  const merchant = await rail.organization();
  const receiver = await startReceiver();
  const { id: program_id } = await merchant.post('/v1/programs', {
    ...{ name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' },
  });
  await merchant.post('/v1/webhook_endpoints', { program_id, url: receiver.url });
  const { id: partner_id } = await merchant.post('/v1/partners', { program_id, email: 'eva@partner.example.com' });

  const trace_id = '0af7651916cd43dd8448eb211c80319c';
  const caller_span = 'b7ad6b7169203331';
  const sale = { program_id, partner_id, external_charge_id: 'ch_1', amount_minor: 10_000, currency: 'USD' };
  const answer = await merchant.request(
    'POST',
    '/v1/sales?secret=hidden',
    { ...sale, customer: { email: 'buyer@example.com', external_customer_id: 'c_1' } },
    { traceparent: `00-${trace_id}-${caller_span}-01` },
  );
  t.equal(answer.status, 400, 'an unknown parameter is refused');
  const { status, headers } = await merchant.request(
    'POST',
    '/v1/sales',
    { ...sale, customer: { email: 'buyer@example.com', external_customer_id: 'c_1' } },
    { traceparent: `00-${trace_id}-${caller_span}-01` },
  );
  t.equal(status, 201);
  const traced = () => receiver.received.filter(({ headers }) => `${headers.traceparent}`.includes(trace_id));
  await eventually(() => traced().length > 0, 'a delivery of the trace');
  const request_id = headers['x-request-id'] ?? headers['rail-request-id'];
  const ofTrace = () => spans.filter((span) => span.trace_id === trace_id);
  const named = (name: string) => ofTrace().filter((span) => span.name === name);
  await eventually(() => named('deliver').length > 0 && named('program/assess_risk').length > 0, 'the spans');

  const root = ofTrace().find((span) => span.attributes['rail.request_id'] === request_id) as Span;
  t.match(root, { parent_id: caller_span, service: 'rail-start', attributes: { 'url.path': '/v1/sales' } });
  const parents = new Map(ofTrace().map((span) => [span.span_id, span.parent_id]));
  const leadsTo = (span: Span): boolean => {
    let at: string | undefined = span.span_id;
    while (at && at !== root.span_id) at = parents.get(at);
    return at === root.span_id;
  };
  await eventually(() => [...named('deliver'), ...named('program/assess_risk')].every(leadsTo), 'the spans in between');
  const deliveries = named('deliver');
  for (const { headers } of traced()) {
    const span = deliveries.find(({ attributes }) => attributes['rail.delivery_id'] === headers['rail-delivery-id']);
    t.equal(headers.traceparent, `00-${trace_id}-${span?.span_id}-01`, 'the receiver can go on with the trace');
  }
  const known = JSON.stringify(spans);
  for (const secret of [
    merchant.key,
    'hidden',
    'buyer@example.com',
    'eva@partner.example.com',
    receiver.url,
    encryption_key.toString('base64'),
  ])
    t.notOk(known.includes(secret), 'no secret is in a span');
  t.same([...new Set(asked)], ['/v1/traces'], 'and nothing but traces is sent');
});

t.test('where nothing is traced, nothing is stored or sent of it', async (t) => {
  const merchant = await rail.organization();
  const receiver = await startReceiver();
  const { id: program_id } = await merchant.post('/v1/programs', {
    ...{ name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' },
  });
  await merchant.post('/v1/webhook_endpoints', { program_id, url: receiver.url });
  await end?.();
  setTracer(undefined);
  await merchant.post('/v1/partners', { program_id, email: 'ada@partner.example.com' });
  await receiver.until(1);
  t.same(
    receiver.received.filter(({ headers }) => headers.traceparent),
    [],
  );
  const [row] = await rail.query(sql`
    select count(*) filter (where e.traceparent is not null) as traced, count(*) as events
    from webhooks.event e where e.organization_id = ${merchant.organization_id} and e.type = 'affiliate.created'`);
  t.match(row, { traced: 0, events: 1 });
});

t.test('says what to install where the libraries are missing, and traces nothing unless it is asked to', async (t) => {
  t.match(
    refusal,
    /npm install --no-save --omit=dev @opentelemetry\/api@\S+ @opentelemetry\/sdk-node@\S+ @fastify\/otel@\S+/,
  );
  t.equal(await startTracing({ ...wanted, OTEL_EXPORTER_OTLP_ENDPOINT: undefined }, 'api'), undefined);
  const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318', DATABASE_URL: rail.url };
  const { code, stderr } = await command(['api'], settings);
  t.equal(code, 1);
  t.match(stderr, /OTEL_EXPORTER_OTLP_ENDPOINT: must be a URL/);
});
