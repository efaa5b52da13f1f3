import { keccak_256 } from '@noble/hashes/sha3';

/** Chains that have addresses like Ethereum's, with a checksum of their own (EIP-1191). */
const other_checksum = /^(rsk|rootstock)/i;
const is_ethereum = /^(eth|ethereum|erc-?20)\b/i;
const looks_like_one = /^0x[0-9a-fA-F]{40}$/;

/**
 * Returns whether an address of a network can be right, as far as Ethereum and the chains with its addresses go: on Ethereum, 0x and 40 hexadecimal
 * digits; in mixed case, the case of each letter is the checksum of EIP-55. Of other networks nothing is known: true.
 */
export function mayBeAddress(address: string, network: string): boolean {
  if (!looks_like_one.test(address)) return !is_ethereum.test(network);
  const digits = address.slice(2);
  const has_checksum = digits !== digits.toLowerCase() && digits !== digits.toUpperCase();
  return !has_checksum || other_checksum.test(network) || digits === withChecksum(digits.toLowerCase());
}

/** EIP-55: a letter is a capital where the same digit of the hash is 8 or more. */
function withChecksum(digits: string): string {
  const hash = Buffer.from(keccak_256(Buffer.from(digits, 'ascii'))).toString('hex');
  return [...digits]
    .map((digit, at) => (Number.parseInt(hash.charAt(at), 16) >= 8 ? digit.toUpperCase() : digit))
    .join('');
}
