import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';

/** Hashes a value with the key of an organization: HMAC-SHA256. */
export type KeyedHash = (value: string) => Buffer;

/** The hash of the organization. Its key is made at the first need of it, and stays when the encryption key is rotated. */
export async function keyedHash(tx: Tx, vault: Vault): Promise<KeyedHash> {
  return hashWith(vault, (await storedKey(tx)) ?? (await makeKey(tx, vault)), tx.organization_id);
}

/** The hash of an organization that has one: to verify what it made. Writes nothing. */
export async function storedHash(tx: Tx, vault: Vault): Promise<KeyedHash | undefined> {
  const key = await storedKey(tx);
  return key && hashWith(vault, key, tx.organization_id);
}

function hashWith(vault: Vault, sealed: Buffer, organization_id: string): KeyedHash {
  // A key object is made once: from a buffer, each hash would make its own, which costs several times what the hash does.
  const key = createSecretKey(Buffer.from(vault.decrypt(sealed, organization_id), 'base64'));
  return (value) => createHmac('sha256', key).update(value).digest();
}

const storedKey = async (tx: Tx): Promise<Buffer | undefined> =>
  (
    await tx.maybe<{ key: Buffer }>(
      sql`select t.key from recruitment.hmac_key t where t.organization_id = ${tx.organization_id}`,
    )
  )?.key;

async function makeKey(tx: Tx, vault: Vault): Promise<Buffer> {
  const sealed = vault.encrypt(randomBytes(32).toString('base64'), tx.organization_id);
  await tx.all(sql`
    insert into recruitment.hmac_key (organization_id, key, created_at)
    values (${tx.organization_id}, ${sealed}, ${tx.now}) on conflict do nothing`);
  return (await storedKey(tx)) as Buffer;
}
