import { isIP } from 'node:net';

/**
 * The address alone of what proxies write: `203.0.113.7:52311`, `[2001:db8::1]:443`, `fe80::1%eth0`, in quotation marks or not. Undefined where
 * it holds none.
 */
export function bareAddress(written: string): string | undefined {
  const [, in_brackets, ipv4, other] =
    /^\s*"?(?:\[([0-9a-fA-F:.]{2,45})(?:%[^\]\s]{1,64})?\](?::\d{1,5})?|([0-9.]{7,15}):\d{1,5}|([0-9a-fA-F:.]{2,45})(?:%[^\s"]{1,64})?)"?\s*$/.exec(
      written,
    ) ?? [];
  const address = in_brackets ?? ipv4 ?? other;
  return address !== undefined && isIP(address) !== 0 ? address : undefined;
}
