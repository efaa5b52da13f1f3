/**
 * Reads JSON bodies strictly, and files where an operation takes one: uncompressed, bounded in depth and number of values, no name twice, no prototype keys, and only texts
 * that Postgres can store.
 */
import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { fileText } from '../formats/file_text.ts';
import { unstorableText } from '../postgres/errors.ts';
import type { Upload } from '../resource/operation.ts';
import { type Details, type DetailWarning, mendDetails } from '../values/detail.ts';
import { Problem } from '../values/problem.ts';
import { pathOfUnstorable } from '../values/texts/stored_text.ts';
import { lowerFirst } from '../values/validation.ts';
import { checkJsonText } from './json_text.ts';

/** What the operations take as files. */
const file_types = ['application/xml', 'text/xml', 'text/csv', 'application/x-ndjson'];
const no_bytes = Buffer.alloc(0);

declare module 'fastify' {
  interface FastifyContextConfig {
    upload?: Upload | undefined;
    details?: Details | undefined;
  }
  interface FastifyRequest {
    rawBody: Buffer;
    /** What the reply says of the details of the body. */
    mended: DetailWarning[];
  }
}

export function readJsonStrictly(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.decorateRequest('rawBody', null as unknown as Buffer);
  app.decorateRequest('mended', null as unknown as DetailWarning[]);
  app.addHook('onRequest', (request, _, done) => {
    request.rawBody = no_bytes;
    request.mended = [];
    done();
  });
  app.removeAllContentTypeParsers();
  readFiles(app);
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    request.rawBody = body as Buffer;
    if (isCompressed(request)) return done(compressed());
    if (body.length === 0) return done(null, undefined);
    if (!isUtf8(body as Buffer)) return done(notUtf8());
    const text = body.toString('utf8');
    try {
      checkJsonText(text);
    } catch (problem) {
      return done(problem as Problem);
    }
    parse(request, text, (error, value) => {
      if (error) return done(new Problem('invalid_json', `The body is not valid JSON: ${faultOf(text)}.`));
      if (value === null) return done(nullBody());
      const { details } = request.routeOptions.config;
      if (details) request.mended = mendDetails(value, details);
      const path = text.includes('\\u') ? pathOfUnstorable(value) : undefined;
      if (path) return done(unstorableText(path.join('.')));
      done(null, value);
    });
  });
}

/** A file is the text of one field of the body. */
function readFiles(app: FastifyInstance): void {
  app.addContentTypeParser(file_types, { parseAs: 'buffer' }, (request, body, done) => {
    const { upload } = request.routeOptions.config;
    const type = (request.headers['content-type'] ?? '').toLowerCase().split(';', 1)[0]?.trim() ?? '';
    request.rawBody = body as Buffer;
    if (!upload?.media_types.includes(type)) return done(notTaken(upload));
    if (isCompressed(request)) return done(compressed());
    const text = fileText(body as Buffer);
    if (text === undefined) return done(unknownEncoding());
    done(null, { [upload.field]: text });
  });
}

/** @param upload what the operation takes besides JSON */
export function notTaken(upload?: Upload): Problem {
  const file = upload ? `, or the file as ${upload.media_types.join(' or ')}` : '';
  return new Problem('unsupported_media_type', `Send the body as JSON with 'Content-Type: application/json'${file}.`, {
    param: 'Content-Type',
  });
}

const unknownEncoding = (): Problem =>
  new Problem(
    'invalid_parameter',
    'The file is not encoded in UTF-8, nor in another encoding that it names. Save it as UTF-8 and send it again.',
  );

const isCompressed = ({ headers: { 'content-encoding': encoding = 'identity' } }: FastifyRequest): boolean =>
  encoding.toLowerCase() !== 'identity';

const compressed = (): Problem =>
  new Problem(
    'unsupported_media_type',
    "Compressed bodies are not supported. Send the body uncompressed, without the header 'Content-Encoding'.",
    { param: 'Content-Encoding' },
  );

const notUtf8 = (): Problem => new Problem('invalid_json', 'The body is not valid JSON: it is not encoded in UTF-8.');

const nullBody = (): Problem =>
  new Problem('invalid_parameter', 'The body is null. Send a JSON object, or no body where none is needed.');

/** Why the strict parser, which does not say so, refused a text. */
function faultOf(text: string): string {
  try {
    JSON.parse(text);
  } catch (error) {
    return lowerFirst((error as Error).message.replace(/, .* is not valid JSON$/s, '').replace(' in JSON', ''));
  }
  return "the names '__proto__' and 'constructor.prototype' are not allowed";
}
