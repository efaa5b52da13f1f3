/** The login of an inbox as it is stored: read, tried, connected with, and kept. */

import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import { type Store, type Tx, transaction } from '../../core/postgres/transaction.ts';
import type { Read } from '../../core/resource/operation.ts';
import type { Services } from '../../core/resource/services.ts';
import type { ProblemCode } from '../../core/values/problem.ts';
import { type Inbox, type InboxKey, inboxes } from './inbox.ts';
import { type Login, proofsOf, type Secrets, timeoutsOf, tryLogin } from './login.ts';
import { mailServerAddress, openImap } from './mail_server.ts';

/** The errors of trying a login. */
export const login_errors: ProblemCode[] = [
  ...(['smtp_auth_failed', 'imap_auth_failed', 'smtp_unreachable', 'imap_unreachable'] as const),
  ...(['oauth_failed', 'address_not_allowed', 'service_unavailable'] as const),
];

/** Tries the stored login of an inbox, before a transaction. */
export async function tryStored(inbox_id: string, services: Services, read: Read) {
  const { login } = await read((tx) => storedLogin(tx, inbox_id, services.vault));
  return { before: login, secrets: await tryLogin(login, services) };
}

interface Reading {
  store: Store;
  services: Services;
}

/** An inbox with its stored login. @throws Problem resource_not_found */
export const readStored = ({ organization_id, inbox_id }: InboxKey, { store, services: { vault } }: Reading) =>
  transaction(store, { organization_id, request_id: null }, (tx) => storedLogin(tx, inbox_id, vault));

/**
 * Returns the proofs of a stored login. A refresh token that the provider replaced is stored at once.
 * @throws Problem oauth_failed
 */
export async function proveStored({ organization_id, inbox_id }: InboxKey, login: Login, { store, services }: Reading) {
  const { proofs, secrets } = await proofsOf(login, services);
  if (secrets !== login.secrets)
    await transaction(store, { organization_id, request_id: null }, (tx) =>
      keepTokens(tx, inbox_id, { before: login, secrets }, services),
    );
  return proofs;
}

/**
 * Opens the IMAP connection of an inbox as it is stored.
 * @param silence_ms how long the server may be silent that owes an answer, where it is not as long as a login may take
 * @throws LoginRefused, Problem, or whatever says why the server cannot be used
 */
export async function openStoredImap(place: InboxKey, context: Reading, silence_ms?: number) {
  const { inbox, login } = await readStored(place, context);
  const { imap } = await proveStored(place, login, context);
  const address = await mailServerAddress('imap', login.imap, context.services);
  const timeouts = { ...timeoutsOf(context.services), ...(silence_ms === undefined ? {} : { silence_ms }) };
  return { client: await openImap(login.imap, address, imap, timeouts), inbox, login };
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

/** The login of an inbox as it is stored. @throws Problem resource_not_found */
export async function storedLogin(tx: Tx, inbox_id: string, vault: Vault): Promise<{ inbox: Inbox; login: Login }> {
  const inbox = await inboxes.get(tx, inbox_id);
  const { secrets } = await tx.one<{ secrets: Buffer }>(sql`
    select i.secrets from recruitment.inbox i
    where i.organization_id = ${tx.organization_id} and i.id = ${inbox_id}`);
  const { smtp, imap, oauth } = inbox;
  return { inbox, login: { smtp, imap, oauth, secrets: JSON.parse(vault.decrypt(secrets, inbox_id)) as Secrets } };
}

/** The columns that hold a login. */
export const loginColumns = (inbox_id: string, { smtp, imap, oauth }: Login, secrets: Secrets, vault: Vault) => ({
  ...{ smtp, imap, oauth },
  secrets: vault.encrypt(JSON.stringify(secrets), inbox_id),
});
