/** The file of a form. */
import type { FastifyRequest } from 'fastify';
import { filesOf } from '../pages/sent_files.ts';

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

/** Reads the field `file` of a form, which is left out where none is chosen. */
export async function sentFile(request: FastifyRequest): Promise<{ file?: SentFile; form_key?: string }> {
  const form = await filesOf(request);
  const [file, key] = [form.get('file'), form.get('form_key')];
  const form_key = typeof key === 'string' && key !== '' ? { form_key: key } : {};
  if (!(file instanceof File) || file.size === 0) return form_key;
  const content = Buffer.from(await file.arrayBuffer());
  const known = signatures.find(([, begins]) => content.subarray(0, begins.length).equals(begins));
  return { ...form_key, file: { name: file.name, media_type: known?.[0], content } };
}
