import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';

/** Encrypts what must be readable again (endpoint secrets, stored replies, payout details): AES-256-GCM. */
export interface Vault {
  /** The ids of the keys, hex; the first is of the one that encrypts. An id reveals nothing of its key. */
  key_ids: string[];
  /** Gives: version, key id (4 bytes), nonce (12), tag (16), ciphertext. `context` must be given again to decrypt. */
  encrypt(plain: string, context: string): Buffer;
  /** @throws Error when the key is another one, or the data was tampered with or belongs to another context. */
  decrypt(encrypted: Buffer, context: string): string;
  /** A keyed hash for what must be compared and never read again (addresses of visitors). Hex. */
  hash(value: string): string;
}

const version = 1;
const header_bytes = 1 + 4 + 12 + 16;

/** @param keys 32 bytes each; the first encrypts, all decrypt. */
export function createVault(keys: Buffer[]): Vault {
  const first = keys[0];
  if (!first || keys.some((key) => key.length !== 32)) throw new Error('An encryption key must have 32 bytes.');
  // Key objects are made once: from a buffer, each call would make its own, which costs more than the call itself.
  const by_id = new Map(keys.map((key) => [keyId(key).toString('hex'), createSecretKey(key)]));
  const current = createSecretKey(first);
  const current_id = keyId(first);
  const hash_key = createSecretKey(Buffer.from(hkdfSync('sha256', first, '', 'rail visitor hash', 32)));
  return {
    key_ids: [...by_id.keys()],
    encrypt(plain, context) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', current, nonce).setAAD(Buffer.from(context));
      const ciphertext = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
      return Buffer.concat([Buffer.from([version]), current_id, nonce, cipher.getAuthTag(), ciphertext]);
    },
    decrypt(encrypted, context) {
      const key = by_id.get(keyIdOf(encrypted));
      if (encrypted[0] !== version || !key) throw new Error('Encrypted with a key that is not in RAIL_ENCRYPTION_KEY.');
      const decipher = createDecipheriv('aes-256-gcm', key, encrypted.subarray(5, 17)).setAAD(Buffer.from(context));
      decipher.setAuthTag(encrypted.subarray(17, header_bytes));
      return Buffer.concat([decipher.update(encrypted.subarray(header_bytes)), decipher.final()]).toString('utf8');
    },
    hash: (value) => createHmac('sha256', hash_key).update(value).digest('hex'),
  };
}

/** Keys as `RAIL_ENCRYPTION_KEY` gives them: base64 of 32 bytes; several, comma-separated, while keys are rotated. */
export function parseEncryptionKeys(text: string): Buffer[] {
  const keys = text.split(',').map((part) => Buffer.from(part.trim(), 'base64'));
  if (keys.some((key) => key.length !== 32)) {
    throw new Error('RAIL_ENCRYPTION_KEY must be 32 bytes in base64. Generate a key with `openssl rand -base64 32`.');
  }
  return keys;
}

/** Gives the id of the key that a value was encrypted with, known or not. */
export const keyIdOf = (encrypted: Buffer): string => encrypted.subarray(1, 5).toString('hex');

/** Returns the hash of all values as one. */
export function sha256(...values: (string | Buffer)[]): Buffer {
  const hash = createHash('sha256');
  for (const value of values) hash.update(value);
  return hash.digest();
}

/** Compares two texts in a time that does not reveal where they differ. */
export const sameText = (a: string, b: string): boolean => timingSafeEqual(sha256(a), sha256(b));

const keyId = (key: Buffer): Buffer => sha256(key).subarray(0, 4);
