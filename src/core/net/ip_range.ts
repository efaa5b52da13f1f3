/** Networks in CIDR notation: `203.0.113.0/24`, `2001:db8::/32`, or an address by itself. */
import { BlockList, isIP, isIPv4 } from 'node:net';

export const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv4(address) ? 'ipv4' : 'ipv6');

/** @throws RangeError where the text is no network, or is that of every address */
export function addNetwork(networks: BlockList, network: string): void {
  const { address, bits } = parse(network);
  networks.addSubnet(address, bits, familyOf(address));
}

/** Returns whether a text is a network. */
export function isNetwork(text: string): boolean {
  try {
    addNetwork(new BlockList(), text);
    return true;
  } catch {
    return false;
  }
}

/** By the list itself, which stays the same for as long as a key does not change. */
const known = new WeakMap<string[], BlockList>();

/** Returns whether an address, or a whole network, lies within one of some networks. What is no address lies in none. */
export function isWithin(networks: string[], text: string): boolean {
  if (isIP(text) !== 0) return blockOf(networks).check(text, familyOf(text));
  if (!isNetwork(text)) return false;
  const { address, bits } = parse(text);
  return networks.some((one) => {
    const outer = parse(one);
    return outer.bits <= bits && familyOf(outer.address) === familyOf(address) && isWithin([one], address);
  });
}

function blockOf(networks: string[]): BlockList {
  const block = known.get(networks) ?? new BlockList();
  if (!known.has(networks)) {
    for (const network of networks) addNetwork(block, network);
    known.set(networks, block);
  }
  return block;
}

function parse(network: string): { address: string; bits: number } {
  const [, address = '', given] = /^([0-9a-fA-F:.]{2,45})(?:\/(\d{1,3}))?$/.exec(network) ?? [];
  const most = isIPv4(address) ? 32 : 128;
  const bits = Number(given ?? most);
  if (isIP(address) === 0 || bits > most || bits === 0) throw new RangeError(`'${network}' is no network.`);
  return { address, bits };
}
