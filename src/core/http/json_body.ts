/**
 * Reads JSON bodies strictly, and files where an operation takes one: uncompressed, bounded in depth and number of values, no name twice, no prototype keys, and only texts
 * that Postgres can store.
 */
import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { fileText } from '../formats/file_text.ts';
import { media_types } from '../formats/format.ts';
import { unstorableText } from '../postgres/errors.ts';
import { most_bulk_values } from '../resource/bulk.ts';
import type { Upload } from '../resource/operation.ts';
import { correctDetails, type Details, type DetailWarning } from '../values/detail.ts';
import { Problem } from '../values/problem.ts';
import { pathOfUnstorable } from '../values/texts/stored_text.ts';
import { lowerFirst } from '../values/validation.ts';
import { checkJsonText } from './json_text.ts';

/** The media types of files that operations accept. */
const file_types = ['application/xml', 'text/xml', 'text/csv', 'application/x-ndjson'];
const no_bytes = Buffer.alloc(0);

declare module 'fastify' {
  interface FastifyContextConfig {
    upload?: Upload | undefined;
    /** The body is a list, whose objects are checked one by one. */
    is_bulk?: boolean;
    details?: Details | undefined;
  }
  interface FastifyRequest {
    rawBody: Buffer;
    /** The warnings in the reply about details of the body. */
    corrections: DetailWarning[];
  }
}

export function readJsonStrictly(app: FastifyInstance): void {
  const parser = app.getDefaultJsonParser('error', 'error');
  /** @throws Problem invalid_json, invalid_parameter */
  const parse = (request: FastifyRequest, text: string, most_values?: number): unknown => {
    checkJsonText(text, most_values);
    let parsed: unknown;
    parser(request, text, (error, value) => {
      parsed = error ? new Problem('invalid_json', `The body is not valid JSON: ${faultOf(text)}.`) : value;
    });
    if (parsed === null) throw nullBody();
    if (parsed instanceof Problem) throw parsed;
    return parsed;
  };
  app.decorateRequest('rawBody', null as unknown as Buffer);
  app.decorateRequest('corrections', null as unknown as DetailWarning[]);
  app.addHook('onRequest', (request, _, done) => {
    request.rawBody = no_bytes;
    request.corrections = [];
    done();
  });
  app.removeAllContentTypeParsers();
  readFiles(app, parse);
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
    request.rawBody = body;
    if (isCompressed(request)) throw compressed();
    if (body.length === 0) return undefined;
    if (!isUtf8(body)) throw notUtf8();
    const { details, is_bulk } = request.routeOptions.config;
    const text = body.toString('utf8');
    const value = parse(request, text, is_bulk ? most_bulk_values : undefined);
    // The fault of one item of a bulk is reported with that item.
    if (is_bulk) return value;
    if (details) request.corrections = correctDetails(value, details);
    const path = text.includes('\\u') ? pathOfUnstorable(value) : undefined;
    if (path) throw unstorableText(path.join('.'));
    return value;
  });
}

/** A file is the text of one field of the body; of a bulk it holds an object a line. */
function readFiles(app: FastifyInstance, parse: (request: FastifyRequest, text: string) => unknown): void {
  app.addContentTypeParser(file_types, { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
    const { upload } = request.routeOptions.config;
    const type = (request.headers['content-type'] ?? '').toLowerCase().split(';', 1)[0]?.trim() ?? '';
    request.rawBody = body;
    if (!filesTaken(request).includes(type)) throw notTaken(request);
    if (isCompressed(request)) throw compressed();
    const text = fileText(body);
    if (text === undefined) throw unknownEncoding();
    if (upload) return { [upload.field]: text };
    const lines = text.split('\n').filter((line) => line.trim() !== '');
    return lines.map((line) => problemOr(() => parse(request, line)));
  });
}

/** Returns the value of a line, or its problem. */
function problemOr(read: () => unknown): unknown {
  try {
    return read();
  } catch (problem) {
    if (problem instanceof Problem) return problem;
    throw problem;
  }
}

/** Returns the media types that the operation accepts besides JSON. */
const filesTaken = ({ routeOptions: { config } }: FastifyRequest): string[] =>
  config.is_bulk ? [media_types.ndjson] : (config.upload?.media_types ?? []);

export function notTaken(request: FastifyRequest): Problem {
  const types = filesTaken(request);
  const file = types.length > 0 ? `, or the file as ${types.join(' or ')}` : '';
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

/** Returns the reason why the strict parser, which gives none, refused a text. */
function faultOf(text: string): string {
  try {
    JSON.parse(text);
  } catch (error) {
    return lowerFirst((error as Error).message.replace(/, .* is not valid JSON$/s, '').replace(' in JSON', ''));
  }
  return "the names '__proto__' and 'constructor.prototype' are not allowed";
}

/** Takes every body of a scope as it came, for webhooks: a signature is of the bytes, whatever they are. */
export function takeRawBodies(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, done) => {
    request.rawBody = body as Buffer;
    done(null, undefined);
  });
}
