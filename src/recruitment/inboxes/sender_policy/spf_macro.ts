/** Macros in SPF records by RFC 7208, section 7. */
import { isIPv4 } from 'node:net';
import { RecordFault } from './verdict.ts';

export interface Sending {
  /** The address of the server that sends. */
  ip: string;
  /** The email address that it sends from. */
  sender: string;
}

const macro = /%(?:\{([slodiphv])(\d*)(r?)([.\-+,/_=]*)\}|([%_-]))|%/gi;
const escapes: Record<string, string> = { '%': '%', _: ' ', '-': '%20' };

/** @param domain that the record is of  @throws RecordFault */
export function expandMacros(text: string, domain: string, sending: Sending): string {
  return text.replace(
    macro,
    (whole, letter?: string, digits?: string, reverse?: string, delimiters?: string, escaped?: string) => {
      if (escaped) return escapes[escaped] as string;
      if (!letter)
        throw new RecordFault(`has the macro \`${whole}\` in \`${text.slice(0, 100)}\`, which is not valid.`);
      const parts = macroValue(letter.toLowerCase(), domain, sending).split(
        new RegExp(`[${(delimiters || '.').replace('-', '\\-')}]`),
      );
      const ordered = reverse ? parts.reverse() : parts;
      return ordered.slice(digits ? -Number(digits) : 0).join('.');
    },
  );
}

function macroValue(letter: string, domain: string, { ip, sender }: Sending): string {
  const at = sender.lastIndexOf('@');
  const values: Record<string, string> = {
    ...{ s: sender, l: sender.slice(0, at), o: sender.slice(at + 1), h: sender.slice(at + 1), d: domain, p: 'unknown' },
    ...{ i: isIPv4(ip) ? ip : nibblesOf(ip), v: isIPv4(ip) ? 'in-addr' : 'ip6' },
  };
  return values[letter] as string;
}

/** `2001:db8::1` as 32 hexadecimal digits with dots between. */
function nibblesOf(ip: string): string {
  const [head = '', tail] = new URL(`http://[${ip}]`).hostname.slice(1, -1).split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':'));
  const [first, last] = [groups(head), groups(tail ?? '')];
  const zeros = Array.from({ length: tail === undefined ? 0 : 8 - first.length - last.length }, () => '0');
  return [...[...first, ...zeros, ...last].map((group) => group.padStart(4, '0')).join('')].join('.');
}
