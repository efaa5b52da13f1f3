/** Turns errors into the error envelope. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { isBrowsing, sendPlainPage } from '../formats/plain_page.ts';
import { translateError, unavailability } from '../postgres/errors.ts';
import { logOutage } from '../postgres/outage.ts';
import { max_body_bytes } from '../values/api.ts';
import { newId } from '../values/id.ts';
import { Problem } from '../values/problem.ts';
import { closeSoon, isClosing } from './connections.ts';
import { notTaken } from './json_body.ts';
import { responseHeaders } from './response_headers.ts';

/** An import of `node:http` would have Node load its `fetch`. */
const { STATUS_CODES } = process.getBuiltinModule('node:http');

/** Answers a request with what was thrown while it was handled, people who browse by a page. Unexpected errors are logged, and answer 500. */
export function replyWithError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = problemOf(error, request);
  const is_page = problem.code === 'route_not_found' || !of_api.test(request.url);
  if (!is_page || !isBrowsing(request)) return sendProblem(problem, reply);
  reply.headers(problem.details.headers ?? {});
  return sendPlainPage(reply, problem.status, problem.status < 500 ? no_page : not_now);
}

/** The paths whose errors are JSON for whoever asks. */
const of_api = /^\/(?:recruitment\/)?v1\//;

const no_page = {
  title: 'Page not found',
  text: 'There is no page at this address. Check the address. The documentation is at /docs.',
};

const not_now = {
  title: 'Not available',
  text: 'The service cannot answer at the moment. Try again in a minute.',
};

/** Returns what was thrown as a problem. Unexpected errors are logged. */
export function problemOf(error: unknown, request: FastifyRequest): Problem {
  if (isBrokenOff(request)) {
    request.log.debug({ err: error }, 'the client broke off its request');
    return late();
  }
  const translated = unavailability(error) ?? translateError(error);
  if (translated instanceof Problem) {
    if (translated.status === 503) logOutage(request.server.log, error);
    else if (translated.status >= 500) request.log.error({ err: error }, translated.message);
    return translated;
  }
  const { code, statusCode = 500, message } = translated as FastifyError;
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new Problem('payload_too_large', `The body is larger than ${mostOf(request)}. Send a smaller one.`);
  }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return notTaken(request);
  if (code === 'FST_ERR_MAX_PARAM_LENGTH') {
    return new Problem('route_not_found', 'The path does not exist: the id in it is too long.');
  }
  if (statusCode < 500) return new Problem('invalid_parameter', message);
  request.log.error({ err: error }, 'a request failed');
  return new Problem('internal_error', 'An unexpected error occurred. Retry with the same idempotency key.');
}

/** Returns the body limit of the route: `1 MiB`, `64 KiB`. */
function mostOf({ routeOptions: { bodyLimit = max_body_bytes } }: FastifyRequest): string {
  return bodyLimit < 1024 * 1024 ? `${bodyLimit / 1024} KiB` : `${bodyLimit / (1024 * 1024)} MiB`;
}

/** Its error is that of a lost connection, as is one of Postgres. */
const isBrokenOff = ({ raw: { destroyed, complete, socket } }: FastifyRequest): boolean =>
  (destroyed && !complete) || socket.destroyed;

const sendProblem = (problem: Problem, reply: FastifyReply) =>
  reply
    .code(problem.status)
    .headers(problem.details.headers ?? {})
    .header('Content-Type', 'application/json; charset=utf-8')
    .serializer(JSON.stringify)
    .send(problem.envelope());

/** Answers what is not HTTP, and so reaches no route, on the bare socket. */
export function refuseUnreadable({ code }: { code?: string }, socket: Socket, https: boolean): void {
  if (isClosing(socket)) return;
  const { _httpMessage: answer } = socket as Socket & { _httpMessage?: ServerResponse | null };
  if (code === 'ECONNRESET' || !socket.writable || answer?.headersSent) return void socket.destroy();
  const problem =
    code === 'ERR_HTTP_REQUEST_TIMEOUT' ? late() : code === 'HPE_HEADER_OVERFLOW' ? tooLong() : unreadable();
  const body = JSON.stringify(problem.envelope());
  const headers = {
    ...responseHeaders({ presented: null, headers: {}, id: newId('req') }, https),
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  closeSoon(socket, `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('')}\r\n${body}`);
}

const late = (): Problem =>
  new Problem('request_timeout', 'The request did not arrive completely in time. Send it again, without pauses.');

const unreadable = (): Problem =>
  new Problem('invalid_parameter', 'The request is not valid HTTP/1.1. Correct its first line and its headers.');

const tooLong = (): Problem =>
  new Problem(
    'headers_too_large',
    'The path and the headers of the request are longer than 16 KiB together. Shorten them.',
  );
