import type { EncryptedTable } from './core/encryption/re_encrypt.ts';

/** Every column that holds a sealed value: what `rail rotate-encryption-key` seals anew. A column that is not here is lost with the old key. */
export const sealed: EncryptedTable[] = [
  { table: 'core.idempotency_key', id: 'key', columns: ['reply'] },
  { table: 'program.payout_method', id: 'partner_id', columns: ['details'] },
  { table: 'webhooks.endpoint', id: 'id', columns: ['secret', 'previous_secret'] },
];
