import type { Transfer } from '../rails/rail.ts';

export const file_methods = ['bank_transfer', 'wire', 'crypto'] as const;
export type FileMethod = (typeof file_methods)[number];

/** The data of a payout that was sent by a file, stored encrypted with its attempt: the file is written from it each time. */
export interface FrozenTransfer extends Transfer {
  /** The text on the partner's bank statement. */
  remittance: string;
}

export const asText = (transfer: FrozenTransfer): string => JSON.stringify(transfer);
export const fromText = (text: string): FrozenTransfer => JSON.parse(text) as FrozenTransfer;
