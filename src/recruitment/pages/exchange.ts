/** One GET, bounded in time and size. */
import type { IncomingHttpHeaders } from 'node:http';
import { pipeline, type Readable, type Transform } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import type { Dispatcher } from 'undici';

export interface Request {
  agent: Dispatcher;
  user_agent: string;
  /** The accepted types, in the syntax of the header. */
  accept: string;
  /** From the connection to the last byte. */
  timeout_ms: number;
  /** The limit of the body, counted after it is decompressed. */
  most_bytes: number;
  signal?: AbortSignal | undefined;
}

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  bytes: Buffer;
  /** True if the body is longer than what was read. */
  is_truncated: boolean;
}

/** No answer within `timeout_ms`. */
export class TooSlow extends Error {
  override readonly name = 'TooSlow';
}

/** The body of an answer cannot be read: its encoding is unknown, or what it holds is broken. */
export class Unreadable extends Error {
  override readonly name = 'Unreadable';
}

/**
 * Gets one page: no redirect is followed, no cookie sent or kept. The body is read of an answer with a status of 2xx alone.
 * @throws TooSlow, Unreadable, the reason of `signal`, what the agent fails with
 */
export async function get(url: URL, request: Request): Promise<Answer> {
  const ending = new AbortController();
  const end = Promise.withResolvers<never>();
  end.promise.catch(() => {});
  const stop = (reason: unknown) => {
    ending.abort(reason);
    end.reject(reason);
  };
  const timer = setTimeout(() => stop(new TooSlow()), request.timeout_ms);
  const cut = () => stop(request.signal?.reason);
  request.signal?.addEventListener('abort', cut, { once: true });
  if (request.signal?.aborted) cut();
  try {
    // Until there is a connection undici heeds no signal.
    return await Promise.race([end.promise, exchange(url, request, ending.signal)]);
  } finally {
    clearTimeout(timer);
    request.signal?.removeEventListener('abort', cut);
  }
}

async function exchange(url: URL, { agent, user_agent, accept, most_bytes }: Request, signal: AbortSignal) {
  const { statusCode, headers, body } = await agent.request({
    origin: url.origin,
    path: url.pathname + url.search,
    method: 'GET',
    headers: { 'user-agent': user_agent, accept, 'accept-encoding': 'gzip, deflate, br' },
    signal,
  });
  // Whoever destroys it early gets no second error.
  body.on('error', () => {});
  if (statusCode < 200 || statusCode > 299) {
    body.destroy();
    return { status: statusCode, headers, bytes: Buffer.alloc(0), is_truncated: false };
  }
  return { status: statusCode, headers, ...(await readAtMost(body, encodingOf(headers), most_bytes)) };
}

/**
 * Returns the compression of the body. A name that is no coding (`none`, `UTF-8`, `binary`) counts as none, as in browsers.
 * @throws Unreadable if it is compressed more than once
 */
function encodingOf(headers: IncomingHttpHeaders): string {
  const named = String(headers['content-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .map((each) => each.trim());
  const [encoding = '', ...others] = named.filter((each) => encodings.has(each));
  if (others.length > 0) throw new Unreadable('several content-encodings');
  return encoding;
}

const encodings = new Set(['gzip', 'x-gzip', 'deflate', 'br', 'zstd']);

/** Stops decompressing at the limit: a bomb costs no more than a page. */
async function readAtMost(body: Readable, encoding: string, most_bytes: number) {
  const decoder = decoderOf(encoding);
  const stream = decoder ? pipeline(body, decoder, () => {}) : body;
  const chunks: Buffer[] = [];
  let left = most_bytes;
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      chunks.push(chunk.subarray(0, left));
      if (chunk.length > left) return { bytes: Buffer.concat(chunks), is_truncated: true };
      left -= chunk.length;
    }
    return { bytes: Buffer.concat(chunks), is_truncated: false };
  } catch (error) {
    throw isOfZlib(error) ? new Unreadable('broken body', { cause: error }) : error;
  } finally {
    body.destroy();
  }
}

/** A compressed body that ends too early is read as far as it came, as browsers do. */
function decoderOf(encoding: string): Transform | undefined {
  switch (encoding) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip({ finishFlush: constants.Z_SYNC_FLUSH });
    case 'deflate':
      return createInflate({ finishFlush: constants.Z_SYNC_FLUSH });
    case 'br':
      return createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH });
    case 'zstd':
      return createZstdDecompress({ finishFlush: constants.ZSTD_e_flush });
    default:
      return undefined;
  }
}

function isOfZlib(error: unknown): boolean {
  const code = String((error as NodeJS.ErrnoException | null)?.code);
  return (
    code.startsWith('Z_') || code.startsWith('ERR__ERROR') || code.startsWith('ERR_BROTLI') || code.startsWith('ZSTD')
  );
}
