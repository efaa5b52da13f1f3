/** The file of a form, read once it is known who sends it: to read the parts of a form takes time. */
import type { FastifyRequest } from 'fastify';

/** A browser sends a part for each field. */
const most_parts = 10;

const signatures: [media_type: string, begins: Buffer][] = [
  ['application/pdf', Buffer.from('%PDF-')],
  ['image/png', Buffer.from('89504e470d0a1a0a', 'hex')],
  ['image/jpeg', Buffer.from('ffd8ff', 'hex')],
];

export interface SentFile {
  name: string;
  /** Its media type by its first bytes, whatever its name and the browser say; undefined where it is none of the three kinds. */
  media_type: string | undefined;
  content: Buffer;
}

/** Reads the field `file` of a form, which is left out where none is chosen. Of a form with more parts than one with a file has, nothing is read. */
export async function sentFile({ headers, body }: FastifyRequest): Promise<{ file?: SentFile; form_key?: string }> {
  if (!Buffer.isBuffer(body)) return {};
  const type = headers['content-type'] ?? '';
  const [, boundary = ''] = /;\s{0,9}boundary="?([^";]{1,200})/i.exec(type) ?? [];
  if (boundary === '' || hasMore(body, `--${boundary}`, most_parts)) return {};
  const form = await new Response(new Uint8Array(body), { headers: { 'Content-Type': type } })
    .formData()
    .catch(() => null);
  const [file, key] = [form?.get('file'), form?.get('form_key')];
  const form_key = typeof key === 'string' && key !== '' ? { form_key: key } : {};
  if (!(file instanceof File) || file.size === 0) return form_key;
  const content = Buffer.from(await file.arrayBuffer());
  const known = signatures.find(([, begins]) => content.subarray(0, begins.length).equals(begins));
  return { ...form_key, file: { name: file.name, media_type: known?.[0], content } };
}

/** Returns whether a text stands in the bytes more often than `most` times, and once at the end. */
function hasMore(bytes: Buffer, text: string, most: number): boolean {
  let at = -1;
  for (let found = 0; found <= most + 1; found++) {
    at = bytes.indexOf(text, at + 1);
    if (at < 0) return false;
  }
  return true;
}
