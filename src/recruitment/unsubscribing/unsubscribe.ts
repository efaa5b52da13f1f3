import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { nobody } from '../brands/acting.ts';
import { addressesOfMessages } from '../contact/addresses_of_messages.ts';
import { suppress, type Target } from '../contact/mark.ts';
import { event } from '../events/event.ts';
import type { Stage } from '../events/fields.ts';
import { lockSuppressions } from '../prospects/barred_site.ts';
import { prospects } from '../prospects/prospect.ts';
import { moveStage } from '../prospects/stage.ts';

/** The parts of a message that say whose wish it is: the email that was unsubscribed from, or the reply that asks for it. */
interface Message {
  id: string;
  purpose: string;
  brand_id: string;
  prospect_id: string | null;
  campaign_id: string | null;
  sequence_id: string | null;
  inbox_id: string;
}

/** Outreach moves nobody out of these. */
const kept_stages: Stage[] = ['agreed', 'active'];

/**
 * Unsubscribes whom a message was sent to, or who sent it: "An unsubscribe suppresses the address organization-wide; every prospect that holds
 * it gets unsubscribed_at; one event, for the message's prospect." Ends every open sequence to them, and moves the prospect to `lost`. Once it has
 * committed, no email to the address begins to be sent. To be called before rows are locked.
 * @param message the email of the link, or the reply that asks to be taken off; whether it surely comes from the address that it names
 * @param source_message_id that reply, where its text was classified: a person can take it back
 */
export async function unsubscribe(
  tx: Tx,
  vault: Vault,
  message: { id: string; is_authentic?: boolean },
  source_message_id: string | null = null,
): Promise<void> {
  await lockSuppressions(tx);
  const unsubscribed = await tx.one<Message>(sql`
    select t.id, t.purpose, t.brand_id, t.prospect_id, t.campaign_id, t.sequence_id, t.inbox_id
    from recruitment.message t
    where ${tenant(tx)} and t.id = ${message.id}`);
  if (unsubscribed.purpose === 'test') return;
  const is_new = await isSubscribed(tx, unsubscribed.prospect_id);
  if (is_new) emitUnsubscribed(tx, unsubscribed);
  const concerned = unsubscribed.prospect_id === null ? [] : [unsubscribed.prospect_id];
  const addresses = await targetsOf(tx, vault, unsubscribed, message.is_authentic ?? false);
  for (const target of addresses) {
    await suppress(tx, vault, target, 'unsubscribed', nobody, { others: concerned, source_message_id });
  }
  if (!is_new) return;
  await noteEmail(tx, message.id);
  const [prospect] = await prospects.lockMany(tx, concerned);
  if (!prospect || kept_stages.includes(prospect.stage)) return;
  await moveStage(tx, prospect, { to: 'lost', reason: 'unsubscribed', by: nobody });
}

/** Notes by which email somebody unsubscribed, for the stats of its campaign: that of the link, or the one that a reply answers. */
const noteEmail = (tx: Tx, message_id: string): Promise<object[]> =>
  tx.all(sql`
    update recruitment.message t set unsubscribed_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = (
      select o.id
      from recruitment.message m
      cross join lateral (
        select m.id, m.rfc_message_id, m.step_index where m.purpose = 'sequence'
        union all
        select s.id, s.rfc_message_id, s.step_index from recruitment.message s
        where s.organization_id = m.organization_id and s.sequence_id = m.sequence_id and s.purpose = 'sequence' and m.direction = 'inbound'
      ) as o
      where m.organization_id = ${tx.organization_id} and m.id = ${message_id}
      order by o.rfc_message_id = m.in_reply_to desc nulls last, o.step_index desc
      limit 1)`);

/** Returns whether there is somebody whose unsubscribe is emitted. Nobody else can unsubscribe them while suppressions are locked. */
async function isSubscribed(tx: Tx, prospect_id: string | null): Promise<boolean> {
  const found = await tx.maybe<{ id: string }>(sql`
    select t.id
    from recruitment.prospect t
    join recruitment.brand b on b.organization_id = t.organization_id and b.id = t.brand_id and b.deleted_at is null
    where ${tenant(tx)} and t.id = ${prospect_id} and t.unsubscribed_at is null`);
  return found !== undefined;
}

function emitUnsubscribed(tx: Tx, { brand_id, prospect_id, campaign_id, sequence_id, inbox_id }: Message): void {
  tx.emit(
    event('affiliate.unsubscribed', tx.organization_id, {
      ...{ brand_id, prospect_id: prospect_id as string, campaign_id, sequence_id, inbox_id },
      occurred_at: tx.now,
    }),
  );
}

/**
 * The addresses that a message speaks for: its own, and of a reply those that were written to. Anybody can name another's as the sender of a reply:
 * it counts where it is proven, or of the company that was written to. In the clear where a prospect still holds them.
 */
async function targetsOf(tx: Tx, vault: Vault, { id, prospect_id }: Message, is_authentic: boolean): Promise<Target[]> {
  const addresses = await tx.all<{ hmac: Buffer; email_address_id: string | null; address: Buffer | null }>(sql`
    with named as (
      select t.address_hmac as hmac
      from recruitment.message t
      where ${tenant(tx)} and t.id = ${id} and (
        t.direction = 'outbound' or ${is_authentic} or exists (
          select from recruitment.sequence s
          where s.organization_id = t.organization_id and s.id = t.sequence_id and s.company_hmac = t.domain_hmac
        )
      )
      union
      select known.hmac
      from recruitment.message t
      cross join lateral (${addressesOfMessages(tx, sql`t.prospect_id`)}) as known
      where ${tenant(tx)} and t.id = ${id} and t.direction = 'inbound' and exists (
        select from recruitment.message o
        where o.organization_id = t.organization_id and o.prospect_id = t.prospect_id and o.address_hmac = known.hmac
          and o.thread_id = t.thread_id and o.direction = 'outbound'
      )
    )
    select distinct on (n.hmac) n.hmac, a.id as email_address_id, a.address
    from named n
    left join recruitment.email_address a on a.organization_id = ${tx.organization_id} and a.address_hmac = n.hmac
    where n.hmac is not null
    order by n.hmac, a.id`);
  if (addresses.length === 0 && prospect_id !== null) return [{ kind: 'prospect', prospect_id }];
  return addresses.map(({ hmac, email_address_id, address }) => ({
    ...{ kind: 'address', hmac },
    email: address && vault.decrypt(address, email_address_id as string),
  }));
}
