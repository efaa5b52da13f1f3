/** Answers that are streamed: all rows of an operation in CSV or NDJSON, and files. How many are open at once, and how long each may take to be read. */
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FileStream } from '../formats/row_stream.ts';
import { reading } from '../postgres/reading.ts';
import type { Store, Tx } from '../postgres/transaction.ts';
import type { Caller } from '../resource/operation.ts';
import { Problem } from '../values/problem.ts';
import { ClientGone, withinDeadline } from './deadline.ts';

export interface ReaderLimits {
  /** The longest pause of a reader. */
  reader_pause_ms: number;
  /** The bytes that a reader must take in each second on average, once the first pause is used up. */
  reader_bytes_per_s: number;
}

/** A transaction that lasts keeps Postgres from cleaning up behind all others, so that it cannot wait for a reader for as long as that likes. */
export const default_reader_limits: ReaderLimits = { reader_pause_ms: 30_000, reader_bytes_per_s: 256 * 1024 };

/** At once: each holds a connection to Postgres. */
const most_of_organization = 2;
const pool_share = 0.25;

/** The number of open streams, by organization. */
export type OpenStreams = Map<string, number>;

/** The time that Postgres has for a batch of rows. */
const batch_ms = 30_000;

export interface Streamed {
  is_feed: boolean | undefined;
  open: (tx: Tx) => Promise<FileStream>;
}

/** Answers with the file, once its first part is at hand: what fails before that is an error like any other. */
export async function sendStream(
  request: FastifyRequest,
  reply: FastifyReply,
  { caller, store, kind, is_feed, open }: Streamed & { caller: Caller; store: Store; kind: string },
): Promise<FastifyReply> {
  const { organization_id, partner_id } = caller;
  const release = take(request.server.open_streams, organization_id, store.database.options.max);
  let opened = { name: '', media_type: '' };
  const gone = new AbortController();
  const asked = { kind, signal: gone.signal, most_ms: batch_ms };
  const chunks = reading(
    store,
    { organization_id, partner_id, request_id: request.id, is_feed, asked },
    async function* (tx) {
      const file = await open(tx);
      opened = file;
      yield* file.chunks;
    },
  );
  const stop = (reason: unknown) => {
    gone.abort(reason);
    chunks.return(undefined).then(release, release);
  };
  const first = await withinDeadline(request, kind, () => chunks.next()).catch((error) => {
    stop(error);
    throw error;
  });
  reply.headers({
    'Content-Type': opened.media_type,
    'Content-Disposition': `attachment; filename="${opened.name}"`,
    Vary: 'Accept',
  });
  if (request.method === 'HEAD') {
    stop(new ClientGone('A HEAD request has no body.'));
    return reply.send();
  }
  const body = Readable.from(
    paced(first, chunks, request.server.reader_limits, (error) => body.destroy(error)),
    {
      objectMode: false,
    },
  );
  // A reader who has gone before the first part is sent leaves `paced` not begun, whose end would then run nothing.
  body.once('close', () => stop(new ClientGone('The reader is gone.')));
  return reply.send(body);
}

/** @throws Problem rate_limit_exceeded, service_unavailable where as many are open as may be */
function take(open: OpenStreams, organization_id: string, pool_size: number): () => void {
  const own = open.get(organization_id) ?? 0;
  if (own >= most_of_organization) {
    throw new Problem(
      'rate_limit_exceeded',
      `Your organization is already reading ${own} streamed responses. Retry when one of them is complete.`,
      { headers: { 'Retry-After': '5' } },
    );
  }
  const all = open.values().reduce((sum, count) => sum + count, 0);
  if (all >= Math.max(1, Math.floor(pool_size * pool_share))) {
    throw new Problem(
      'service_unavailable',
      'The service is sending as many streamed responses as it can. Retry in a few seconds.',
      { headers: { 'Retry-After': '5' } },
    );
  }
  open.set(organization_id, own + 1);
  return () => {
    const left = (open.get(organization_id) as number) - 1;
    if (left === 0) open.delete(organization_id);
    else open.set(organization_id, left);
  };
}

/** The chunks, for as long as they are taken fast enough. */
async function* paced(
  first: IteratorResult<string | Buffer>,
  chunks: AsyncGenerator<string | Buffer>,
  { reader_pause_ms, reader_bytes_per_s }: ReaderLimits,
  cut: (error: Error) => void,
): AsyncGenerator<Buffer> {
  let waited_ms = 0;
  let sent_bytes = 0;
  for (let result = first; !result.done; result = await chunks.next()) {
    const chunk = typeof result.value === 'string' ? Buffer.from(result.value) : result.value;
    const allowed_ms = reader_pause_ms + (sent_bytes / reader_bytes_per_s) * 1_000 - waited_ms;
    const timer = setTimeout(() => cut(new Error('The reader is too slow.')), Math.min(allowed_ms, reader_pause_ms));
    const began = performance.now();
    try {
      yield chunk;
    } finally {
      clearTimeout(timer);
    }
    waited_ms += performance.now() - began;
    sent_bytes += chunk.length;
  }
}
