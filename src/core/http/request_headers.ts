/** Checks the headers of every request, before anything else. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { Problem } from '../values/problem.ts';

/** Headers of which a second one would be dropped, or taken for a part of the first. */
const single = new Map(
  [
    ...['Authorization', 'Content-Encoding', 'Content-Type', 'Expect', 'Host'],
    ...['Idempotency-Key', 'Rail-Signature', 'Rail-Version'],
  ].map((name) => [name.toLowerCase(), name]),
);

/** Refuses requests whose headers are ambiguous. */
export function requireClearHeaders(app: FastifyInstance): void {
  app.addHook('onRequest', async ({ raw }) => {
    if (raw.headers.host === undefined && raw.httpVersion === '1.1') {
      throw new Problem('missing_parameter', "The header 'Host' is required by HTTP/1.1.", { param: 'Host' });
    }
    const param = repeatedHeader(raw);
    if (param !== undefined) {
      throw new Problem('invalid_parameter', `The header '${param}' is sent more than once. Send it once.`, { param });
    }
  });
}

function repeatedHeader({ rawHeaders }: IncomingMessage): string | undefined {
  const seen = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = single.get((rawHeaders[index] as string).toLowerCase());
    if (name === undefined) continue;
    if (seen.has(name)) return name;
    seen.add(name);
  }
  return undefined;
}

/**
 * A client that waits for its body to be asked for is asked once nothing speaks against the request; any other expectation is refused. Left
 * alone, Node asks for a body before anybody has looked at the key, and refuses without headers and envelope.
 */
export function answerExpectations(app: FastifyInstance): void {
  const waiting = new WeakSet<ServerResponse>();
  app.server.on('checkContinue', (request, response) => {
    waiting.add(response);
    app.server.emit('request', request, response);
  });
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  app.addHook('onRequest', async ({ headers: { expect } }) => {
    if (expect === undefined || expect.toLowerCase() === '100-continue') return;
    throw new Problem('expectation_failed', "The header 'Expect' supports '100-continue' only. Remove the header.", {
      param: 'Expect',
    });
  });
  app.addHook('preParsing', async (_, { raw }) => {
    if (waiting.delete(raw)) raw.writeContinue();
  });
}
