import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** Writes a file that is whole or not there, and that only its owner can read; without a path, standard output. */
export async function writeOut(path: string | undefined, chunks: AsyncIterable<string | Uint8Array>): Promise<void> {
  if (path === undefined) return pipeline(Readable.from(chunks), process.stdout, { end: false });
  const unfinished = `${path}.${randomUUID()}`;
  try {
    await pipeline(Readable.from(chunks), createWriteStream(unfinished, { mode: 0o600, flush: true }));
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}
