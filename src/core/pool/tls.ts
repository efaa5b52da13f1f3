/** The TLS modes of libpq, in the terms of the driver, which lacks `allow` and `prefer`. */
import { existsSync } from 'node:fs';

const modes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'];
const files = ['sslrootcert', 'sslcert', 'sslkey'];

/**
 * The URLs by which Postgres is to be tried, the first that it lets in is the one: with TLS, without, or both, as `sslmode` says. Without
 * `sslmode`, TLS is used where Postgres insists on it.
 * @throws Error that says what is wrong with the URL
 */
export function urlsByTls(url: string): string[] {
  const { searchParams, hostname } = new URL(url);
  if (searchParams.has('ssl') || (searchParams.get('host') ?? hostname).startsWith('/')) return [url];
  const mode = searchParams.get('sslmode') ?? 'allow';
  if (!modes.includes(mode)) throw new Error(`sslmode is '${mode}'. Set it to one of ${modes.join(', ')}.`);
  if (mode === 'disable') return [without(url)];
  if (mode === 'allow') return [without(url), withTls(url, 'require')];
  if (mode === 'prefer') return [withTls(url, 'require'), without(url)];
  return [withTls(url, mode)];
}

function without(url: string): string {
  const changed = new URL(url);
  for (const file of files) changed.searchParams.delete(file);
  changed.searchParams.set('sslmode', 'disable');
  return changed.href;
}

function withTls(url: string, mode: string): string {
  const changed = new URL(url);
  const { searchParams } = changed;
  const is_system = searchParams.get('sslrootcert') === 'system';
  if (mode === 'verify-ca' && !searchParams.has('sslrootcert'))
    throw new Error('sslmode=verify-ca needs sslrootcert: the file with the certificate of the authority.');
  for (const name of is_system ? [] : files) {
    const file = searchParams.get(name);
    if (file !== null && !existsSync(file)) throw new Error(`${name} names ${file}, where there is no file.`);
  }
  if (is_system) searchParams.delete('sslrootcert');
  searchParams.set('sslmode', is_system ? 'verify-full' : mode);
  searchParams.set('uselibpqcompat', 'true');
  return changed.href;
}

/** Returns whether Postgres refused a connection because of TLS, so that the other way is to be tried. */
export const isRefusedForTls = ({ code, message }: { code?: string; message: string }): boolean =>
  /does not support SSL/.test(message) || (code === '28000' && /no encryption|SSL o/.test(message));
