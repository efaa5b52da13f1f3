/** Passwords of Postgres roles, as verifiers: a password that is sent in a statement would stand in logs and in statistics. */
import { createHash, createHmac, pbkdf2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

/** The default of Postgres. */
const iterations = 4096;

/** 256 bits, of characters that need no encoding in a URL. */
export const newPassword = (): string => randomBytes(32).toString('base64url');

/**
 * Returns the verifier that Postgres stores for a password under `password_encryption = scram-sha-256` (RFC 5803).
 * @param password ASCII, which SASLprep leaves as it is
 */
export async function scramVerifier(password: string, salt = randomBytes(16)): Promise<string> {
  const salted = await promisify(pbkdf2)(password, salt, iterations, 32, 'sha256');
  const client_key = createHmac('sha256', salted).update('Client Key').digest();
  const server_key = createHmac('sha256', salted).update('Server Key').digest('base64');
  const stored_key = createHash('sha256').update(client_key).digest('base64');
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${stored_key}:${server_key}`;
}
