/**
 * Spans of traces. Where nobody has asked for traces (`src/tracing.ts`), works run as they are: this file knows no library, and what it is asked
 * costs nothing.
 */

export interface Span {
  /** The place of the span in its trace, as the header `traceparent` (W3C Trace Context). */
  traceparent: string;
  set(attributes: Attributes): void;
}

/** No secret, and nothing that a person wrote. */
export type Attributes = Record<string, string | number>;

interface SpanOptions {
  /** The span that caused it, which may have been one of another process: its `traceparent`. Left out: the one that is running here. */
  parent: string | undefined;
  /** `consumer`: it takes up what was enqueued; `client`: it calls another server. */
  kind: 'consumer' | 'client';
  attributes: Attributes;
}

export interface Tracer {
  traceparent(): string | undefined;
  inSpan<T>(name: string, options: SpanOptions, work: (span: Span) => Promise<T>): Promise<T>;
}

let tracer: Tracer | undefined;

/** From now on works are traced, or not. */
export function setTracer(given: Tracer | undefined): void {
  tracer = given;
}

/** Returns the place of the running work in its trace; undefined where it is in none. */
export const traceparent = (): string | undefined => tracer?.traceparent();

/** Runs work as a span, which fails as the work does. @param work is given no span where nothing is traced */
export const inSpan = <T>(
  name: string,
  options: SpanOptions,
  work: (span: Span | undefined) => Promise<T>,
): Promise<T> => (tracer ? tracer.inSpan(name, options, work) : work(undefined));
