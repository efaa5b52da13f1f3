import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Inbox, inboxes } from './inbox.ts';
import type { Login, Secrets } from './login.ts';

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
