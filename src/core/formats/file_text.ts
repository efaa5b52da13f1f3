import { isUtf8 } from 'node:buffer';

/**
 * The text of a file, in the encoding that it names itself: by its byte order mark, or as XML in its declaration. UTF-8 where it names none.
 * @returns undefined where its bytes are not of that encoding, or nobody knows it
 */
export function fileText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder(encodingOf(bytes), { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function encodingOf(bytes: Uint8Array): string {
  const [first, second] = bytes;
  if ((first === 0xff && second === 0xfe) || (first === 0x3c && second === 0)) return 'utf-16le';
  if ((first === 0xfe && second === 0xff) || (first === 0 && second === 0x3c)) return 'utf-16be';
  // A text of another encoding that has letters beyond ASCII is no UTF-8: who converted the file may have left the declaration.
  if (isUtf8(bytes)) return 'utf-8';
  const head = Buffer.from(bytes.subarray(0, 200)).toString('latin1');
  return /^<\?xml[^>]*\sencoding\s*=\s*["']([\w.:-]+)["']/.exec(head)?.[1] ?? 'utf-8';
}
