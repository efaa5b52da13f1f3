import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { limits } from '../../mail/incoming/message/shorten.ts';

/** The bytes of a mail, as many as are looked at; `-` is standard input. @throws Error saying why there are none */
export const readMail = (file: string): Promise<Uint8Array> =>
  readBytes(file).catch(({ code, message }: NodeJS.ErrnoException) => {
    throw new Error(`${file}: ${code === 'ENOENT' ? 'no such file.' : message}`);
  });

async function readBytes(file: string): Promise<Uint8Array> {
  const stream = file === '-' ? process.stdin : createReadStream(file);
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    length += chunk.length;
    // One byte more than is read, so that a mail that is cut is known to be.
    if (length > limits.message) break;
  }
  return Buffer.concat(chunks);
}

const Text = z.object({ id: z.union([z.string(), z.number()]), subject: z.string().optional(), text: z.string() });

export const readLines = (): AsyncIterable<string> =>
  createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY });

/** @throws Error saying what is wrong with the line */
export function textIn(line: string, number: number): z.infer<typeof Text> {
  const { data } = Text.safeParse(jsonIn(line, number));
  if (data) return data;
  throw new Error(`line ${number} must have 'id' (a string or a number), 'text' (a string) and optionally 'subject'.`);
}

function jsonIn(line: string, number: number): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new Error(`line ${number} is not valid JSON.`);
  }
}

/** Waits while the reader of standard output is slow: what is printed does not pile up in memory. */
export async function print(line: string): Promise<void> {
  if (!process.stdout.write(`${line}\n`)) await once(process.stdout, 'drain');
}
