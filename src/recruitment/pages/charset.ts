/** In which encoding a page is written, and its text. */

/** The bytes of a page that are searched for its declared encoding. */
const prescanned_bytes = 4_096;

/**
 * The text of a body: by its byte order mark, else by the header, else by what the page says itself, else by trial. A page that is declared
 * in UTF-8 and is not, or declared in a single-byte encoding and is in UTF-8, is read as what it is. Never throws.
 */
export function decodeText(bytes: Buffer, content_type: string | undefined): string {
  const marked = byteOrderMark(bytes);
  if (marked !== undefined) return decode(bytes, marked);
  const head = bytes.toString('latin1', 0, prescanned_bytes);
  const declared = knownLabel(charsetOf(content_type)) ?? knownLabel(charsetInPage(head));
  if (declared !== undefined && !declared.startsWith('utf-') && !isSingleByteWestern(declared))
    return decode(bytes, declared);
  const is_utf8 = isUtf8(bytes);
  if (is_utf8) return decode(bytes, 'utf-8');
  const fallback = declared === undefined || declared.startsWith('utf-') ? 'windows-1252' : declared;
  return decode(bytes, knownLabel(charsetInPage(head), 'utf-8') ?? fallback);
}

function byteOrderMark(bytes: Buffer): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8';
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be';
  return undefined;
}

function charsetOf(content_type: string | undefined): string | undefined {
  return /charset\s*=\s*["']?([\w:.-]+)/i.exec(content_type ?? '')?.[1];
}

/** Returns the encoding that a meta element or an XML declaration names. */
function charsetInPage(head: string): string | undefined {
  return (
    /<meta[^>]{0,200}?charset\s*=\s*["']?([\w:.-]+)/i.exec(head)?.[1] ??
    /^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w:.-]+)/i.exec(head)?.[1]
  );
}

/** The encoding's own name. Undefined for one that nobody knows, and for `except`. */
function knownLabel(label: string | undefined, except?: string): string | undefined {
  if (label === undefined) return undefined;
  try {
    const { encoding } = new TextDecoder(label);
    // A page that says it is in UTF-16, in ASCII, is in UTF-8 (HTML standard).
    const known = encoding.startsWith('utf-16') ? 'utf-8' : encoding;
    return known === except ? undefined : known;
  } catch {
    return undefined;
  }
}

function isSingleByteWestern(encoding: string): boolean {
  return encoding === 'windows-1252' || encoding === 'iso-8859-15' || encoding === 'windows-1254';
}

/** Its last character may be cut off. */
function isUtf8(bytes: Buffer): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
}

function decode(bytes: Buffer, encoding: string): string {
  return new TextDecoder(encoding).decode(bytes);
}
