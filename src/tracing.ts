/**
 * OpenTelemetry: where an OTLP endpoint is set, requests, jobs and deliveries are spans of one trace. The libraries are the operator's to install,
 * and loaded by nothing else; all further settings are the standard ones (OTEL_…), which they read themselves.
 */
import pkg from '../package.json' with { type: 'json' };
import type { Config } from './config.ts';
import { type Span, setTracer } from './core/values/trace.ts';

const libraries = ['@opentelemetry/api', '@opentelemetry/sdk-node', '@fastify/otel'] as const;

/**
 * Begins to trace, before the process loads Fastify.
 * @returns what sends the last spans; undefined where nothing is traced
 * @throws Error that says what to install
 */
export async function startTracing(
  config: Pick<Config, 'OTEL_EXPORTER_OTLP_ENDPOINT' | 'OTEL_SERVICE_NAME'>,
  role: string,
): Promise<(() => Promise<void>) | undefined> {
  if (config.OTEL_EXPORTER_OTLP_ENDPOINT === undefined) return undefined;
  const { api, sdk, fastify } = await load();
  const { context, propagation, SpanKind, SpanStatusCode, trace } = api;
  const node = new sdk.NodeSDK({
    // Metrics and logs go their own ways.
    ...{ metricReaders: [], logRecordProcessors: [] },
    serviceName: config.OTEL_SERVICE_NAME ?? `rail-${role}`,
    instrumentations: [
      new fastify.FastifyOtelInstrumentation({
        registerOnInitialization: true,
        // One span a request: no message of an error, and none for each hook.
        ...{ instrumentHooks: false, instrumentHandler: false, recordExceptions: false },
        // A path may hold a secret, as that of a magic link does: the route says enough.
        requestHook: (span, request) => {
          const route = request.routeOptions.url ?? '';
          span.updateName(`${request.method} ${route}`.trim());
          span.setAttribute('url.path', route);
          span.setAttribute('rail.request_id', String(request.id));
        },
      }),
    ],
  });
  node.start();
  const tracer = trace.getTracer('rail', pkg.version);
  const kinds = { consumer: SpanKind.CONSUMER, client: SpanKind.CLIENT };
  const traceparentIn = (of: ReturnType<typeof context.active>): string | undefined => {
    const carrier: { traceparent?: string } = {};
    propagation.inject(of, carrier);
    return carrier.traceparent;
  };
  setTracer({
    traceparent: () => traceparentIn(context.active()),
    inSpan(name, { parent, kind, attributes }, work) {
      const from =
        parent === undefined ? context.active() : propagation.extract(context.active(), { traceparent: parent });
      return tracer.startActiveSpan(name, { kind: kinds[kind], attributes }, from, async (span) => {
        const given: Span = {
          traceparent: traceparentIn(trace.setSpan(from, span)) ?? '',
          set: (more) => void span.setAttributes(more),
        };
        try {
          return await work(given);
        } catch (error) {
          span.setStatus({ code: SpanStatusCode.ERROR, message: (error as Error).name });
          throw error;
        } finally {
          span.end();
        }
      });
    },
  });
  return () => node.shutdown().catch(() => {});
}

async function load() {
  try {
    const [api, sdk, fastify] = await Promise.all([
      import('@opentelemetry/api'),
      import('@opentelemetry/sdk-node'),
      import('@fastify/otel'),
    ]);
    return { api, sdk, fastify };
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    const wanted = libraries.map((name) => `${name}@${pkg.devDependencies[name]}`);
    throw new Error(
      `OTEL_EXPORTER_OTLP_ENDPOINT is set, and what sends traces is not installed. Run: npm install --no-save --omit=dev ${wanted.join(' ')}`,
    );
  }
}
