/** Reads JSON bodies strictly: UTF-8, uncompressed, no prototype keys, bounded depth, and only texts that Postgres can store. */
import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { unstorableText } from '../postgres/errors.ts';
import { Problem } from '../values/problem.ts';
import { lowerFirst } from '../values/validation.ts';

const max_body_depth = 64;
const no_bytes = Buffer.alloc(0);

declare module 'fastify' {
  interface FastifyRequest {
    rawBody: Buffer;
  }
}

export function readJsonStrictly(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.decorateRequest('rawBody', null as unknown as Buffer);
  app.addHook('onRequest', (request, _, done) => {
    request.rawBody = no_bytes;
    done();
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    request.rawBody = body as Buffer;
    if (isCompressed(request)) return done(compressed());
    if (body.length === 0) return done(null, undefined);
    if (!isUtf8(body as Buffer)) return done(notUtf8());
    const text = body.toString('utf8');
    parse(request, text, (error, value) => {
      if (error) return done(new Problem('invalid_json', `The body is not valid JSON: ${faultOf(text)}.`));
      if (nestsDeeper(value, max_body_depth)) return done(tooDeep());
      if (text.includes('\\u') && !isStorable(value)) return done(unstorableText());
      done(null, value);
    });
  });
}

const isCompressed = ({ headers: { 'content-encoding': encoding = 'identity' } }: FastifyRequest): boolean =>
  encoding.toLowerCase() !== 'identity';

const compressed = (): Problem =>
  new Problem(
    'unsupported_media_type',
    "Compressed bodies are not supported. Send the body uncompressed, without the header 'Content-Encoding'.",
    { param: 'Content-Encoding' },
  );

const notUtf8 = (): Problem => new Problem('invalid_json', 'The body is not valid JSON: it is not encoded in UTF-8.');

const tooDeep = (): Problem =>
  new Problem('invalid_parameter', `The body may be nested at most ${max_body_depth} levels deep.`);

/** Why the strict parser, which does not say so, refused a text. */
function faultOf(text: string): string {
  try {
    JSON.parse(text);
  } catch (error) {
    return lowerFirst((error as Error).message.replace(/, .* is not valid JSON$/s, '').replace(' in JSON', ''));
  }
  return "the names '__proto__' and 'constructor.prototype' are not allowed";
}

/** Looks level by level: what recurses over the body afterwards cannot be made to run out of stack. */
function nestsDeeper(value: unknown, most: number): boolean {
  let level = [value];
  for (let depth = 0; depth <= most; depth++) {
    level = level.flatMap((one) => (one !== null && typeof one === 'object' ? Object.values(one) : []));
    if (level.length === 0) return false;
  }
  return true;
}

/** Whether Postgres can store every text as it was sent: neither NUL nor half of a surrogate pair. */
export function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed() && !value.includes('\0');
  if (value === null || typeof value !== 'object') return true;
  return Object.entries(value).every(([name, inner]) => isStorable(name) && isStorable(inner));
}
