/** The limits of reading a message: whoever writes to an inbox chooses its size, its parts and its nesting. */
export interface Limits {
  /** Bytes that are looked at. */
  message: number;
  /** Bytes kept of the header or body of one part. */
  part: number;
  /** Lines kept of it. */
  lines: number;
  /** Bytes kept of all parts. */
  kept: number;
  /** Lines that can begin a part. */
  boundaries: number;
}

export const limits: Limits = { message: 50 << 20, part: 512 << 10, lines: 4_000, kept: 4 << 20, boundaries: 2_000 };

const newline = 0x0a;
const dash = 0x2d;

/**
 * A message without what is beyond the limits: the rest of a long part is left out, so that attachments cost nothing, and the
 * parts behind it are read all the same. `whole` is false where parts are missing, not where one is cut short.
 */
export function shorten(message: Uint8Array, limit: Limits = limits): { bytes: Uint8Array; whole: boolean } {
  const input = withoutMboxLine(message.subarray(0, limit.message));
  const kept = new Uint8Array(Math.min(input.length + 1, limit.kept));
  let length = 0;
  let part = { bytes: 0, lines: 0 };
  let boundaries = 0;
  for (let begin = 0; begin < input.length; ) {
    const end = endOfLine(input, begin);
    if (input[begin] === dash && input[begin + 1] === dash) {
      part = { bytes: 0, lines: 0 };
      if (++boundaries > limit.boundaries) return { bytes: kept.subarray(0, length), whole: false };
    }
    const line = input.subarray(begin, Math.min(end, begin + limit.part - part.bytes));
    if (length + line.length + 1 > kept.length) return { bytes: kept.subarray(0, length), whole: false };
    kept.set(line, length);
    length += line.length;
    part = { bytes: part.bytes + line.length, lines: part.lines + 1 };
    const is_full = part.bytes >= limit.part || part.lines >= limit.lines;
    if (is_full && line.at(-1) !== newline) kept[length++] = newline;
    begin = is_full ? nextBoundary(input, end) : end;
  }
  return { bytes: kept.subarray(0, length), whole: message.length <= limit.message };
}

/** Returns the start of the next line that can begin a part: skipped bytes are not searched line by line. */
function nextBoundary(bytes: Uint8Array, from: number): number {
  const at = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).indexOf('\n--', from - 1);
  return at < 0 ? bytes.length : at + 1;
}

function endOfLine(bytes: Uint8Array, from: number): number {
  const at = bytes.indexOf(newline, from);
  return at < 0 ? bytes.length : at + 1;
}

/** Files that come out of a mailbox begin with "From MAILER-DAEMON Mon Sep 20 …", and some with empty lines. */
function withoutMboxLine(bytes: Uint8Array): Uint8Array {
  let begin = 0;
  while (bytes[begin] === newline || bytes[begin] === 0x0d) begin += 1;
  const start = String.fromCharCode(...bytes.subarray(begin, begin + 5));
  return bytes.subarray(start === 'From ' ? endOfLine(bytes, begin) : begin);
}
