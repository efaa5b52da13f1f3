import type { Tx } from '../../core/postgres/transaction.ts';
import type { Read } from '../../core/resource/operation.ts';
import type { Services } from '../../core/resource/services.ts';
import type { ProblemCode } from '../../core/values/problem.ts';
import { inboxes } from './inbox.ts';
import { type Login, tryLogin } from './login.ts';
import { loginColumns, storedLogin } from './stored_login.ts';

/** What trying a login may answer. */
export const login_errors: ProblemCode[] = [
  ...(['smtp_auth_failed', 'imap_auth_failed', 'smtp_unreachable', 'imap_unreachable'] as const),
  ...(['oauth_failed', 'address_not_allowed', 'service_unavailable'] as const),
];

/** Tries the stored login of an inbox, before a transaction. */
export async function tryStored(inbox_id: string, services: Services, read: Read) {
  const { login } = await read((tx) => storedLogin(tx, inbox_id, services.vault));
  return { before: login, secrets: await tryLogin(login, services) };
}

/** Keeps a refresh token that the provider replaced, unless the login was changed meanwhile. */
export async function keepTokens(
  tx: Tx,
  inbox_id: string,
  { before, secrets }: { before: Login; secrets: Login['secrets'] },
  { vault }: Services,
): Promise<void> {
  await inboxes.get(tx, inbox_id, { lock: true });
  if (before.secrets === secrets) return;
  const { login } = await storedLogin(tx, inbox_id, vault);
  if (JSON.stringify(login) !== JSON.stringify(before)) return;
  await inboxes.update(tx, inbox_id, loginColumns(inbox_id, login, secrets, vault));
}
