import type { Transfer } from '../rails/rail.ts';

export const file_methods = ['bank_transfer', 'wire', 'crypto'] as const;
export type FileMethod = (typeof file_methods)[number];

/** What is kept, encrypted, with the attempt of a payout that was sent by a file: the file is written from it each time. */
export interface FrozenTransfer extends Transfer {
  /** What the partner reads on the bank statement. */
  remittance: string;
}

export const asText = (transfer: FrozenTransfer): string => JSON.stringify(transfer);
export const fromText = (text: string): FrozenTransfer => JSON.parse(text) as FrozenTransfer;
