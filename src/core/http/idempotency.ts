import sql from 'sql-template-tag';
import { sha256, type Vault } from '../encryption/vault.ts';
import type { Tx } from '../postgres/transaction.ts';
import { Problem } from '../values/problem.ts';

/** A reply as it goes out. */
export interface Reply {
  status: number;
  body: string;
}

export interface IdempotentRequest {
  key: string;
  /** SHA-256 of the API key's id, method, path and raw body: no other key is shown the reply, which may hold a secret. */
  fingerprint: Buffer;
}

/**
 * Reads `Idempotency-Key`: "any POST may carry" it.
 * @throws Problem invalid_parameter when it is not 1 to 255 characters long
 */
export function idempotentRequest(
  api_key_id: string,
  method: string,
  url: string,
  header: unknown,
  raw: Buffer,
): IdempotentRequest | undefined {
  if (method !== 'POST' || header === undefined) return undefined;
  if (typeof header !== 'string' || header.length < 1 || header.length > 255) {
    throw new Problem('invalid_parameter', 'Idempotency-Key must be 1 to 255 characters long.', {
      param: 'Idempotency-Key',
    });
  }
  return { key: header, fingerprint: sha256(`${api_key_id} ${method} ${url}\n`, raw) };
}

/**
 * The first reply, where this key has one: "the same key replays the first response for 24 hours".
 * @throws Problem idempotency_key_in_flight, idempotency_key_reused
 */
export function storedReply({ stored }: Tx, request: IdempotentRequest, vault: Vault): Reply | undefined {
  if (stored.in_flight) {
    throw new Problem(
      'idempotency_key_in_flight',
      'The first request with this Idempotency-Key is still running. Retry shortly.',
      {
        param: 'Idempotency-Key',
        headers: { 'Retry-After': '1' },
      },
    );
  }
  if (!stored.fingerprint) return undefined;
  if (!stored.fingerprint.equals(request.fingerprint)) {
    throw new Problem(
      'idempotency_key_reused',
      'This Idempotency-Key was used for a different request. Use a new key for a new request.',
      {
        param: 'Idempotency-Key',
      },
    );
  }
  return { status: stored.status as number, body: vault.decrypt(stored.reply as Buffer, request.key) };
}

/** Keeps the reply: it is written with the commit of its effect, so that after a crash either both exist or neither. */
export function keepReply(
  tx: Tx,
  { key, fingerprint }: IdempotentRequest,
  { status, body }: Reply,
  vault: Vault,
): void {
  tx.atCommit(sql`
    insert into core.idempotency_key (organization_id, key, fingerprint, status, reply, created_at)
    values (${tx.organization_id}, ${key}, ${fingerprint}, ${status}, ${vault.encrypt(body, key)}, clock_timestamp())
    on conflict (organization_id, key) do update set
      fingerprint = excluded.fingerprint, status = excluded.status, reply = excluded.reply, created_at = excluded.created_at`);
}
