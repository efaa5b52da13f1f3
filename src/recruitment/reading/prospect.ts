import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { emailAddresses, opened } from '../contact/email_address.ts';
import type { Target } from '../contact/mark.ts';
import { type Prospect, prospects } from '../prospects/prospect.ts';
import type { Answered } from './answer.ts';

/** The prospect that was written to, locked until the transaction ends; undefined once erased, or its brand deleted. */
export async function lockedProspect(tx: Tx, { prospect_id }: Answered): Promise<Prospect | undefined> {
  if (prospect_id === null) return undefined;
  const [prospect] = await prospects.lockMany(tx, [prospect_id]);
  return prospect;
}

/** What bars the address that was written to; where the prospect holds it no longer, the prospect as well. */
export async function targetsOf(
  tx: Tx,
  vault: Vault,
  { address_hmac }: Answered,
  prospect_id: string,
): Promise<Target[]> {
  const record = await emailAddresses.find(
    tx,
    sql`${tenant(tx)} and t.prospect_id = ${prospect_id} and t.address_hmac = ${address_hmac}`,
  );
  const email = record ? opened(vault, record).email : null;
  const address: Target[] = address_hmac === null ? [] : [{ kind: 'address', hmac: address_hmac, email }];
  return record ? address : [...address, { kind: 'prospect', prospect_id }];
}
