/** Detects that invited prospects joined: follows the events of the brands' programs, each by a cursor of its own. */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { invitationsOf } from '../../program/activation.ts';
import { type FollowedEvent, nextEvents } from '../../webhooks/events/follow.ts';
import { nobody } from '../brands/acting.ts';
import { hashesOf } from '../contact/address.ts';
import { signUp } from '../prospects/invite.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import { type Prospect, prospects } from '../prospects/prospect.ts';
import { types } from './find_joining.ts';

/** Looks for invited prospects among the partners of the program's next events, at most so many. @returns how many events there were */
export async function observeJoining(tx: Tx, vault: Vault, program_id: string, most: number): Promise<number> {
  const after = await lockCursor(tx, program_id);
  const events = await nextEvents(tx, { subject_id: program_id, types, after, most });
  const last = events.at(-1);
  if (!last) return 0;
  await signUpEach(tx, vault, program_id, await unmade(tx, events.map(joinerOf)));
  await tx.all(sql`
    update recruitment.joining_cursor t set position = ${last.position}
    where ${tenant(tx)} and t.program_id = ${program_id}`);
  return events.length;
}

/** Waits for another run. @returns the position of the last event that was read */
async function lockCursor(tx: Tx, program_id: string): Promise<number> {
  await tx.all(sql`
    insert into recruitment.joining_cursor (organization_id, program_id)
    values (${tx.organization_id}, ${program_id}) on conflict do nothing`);
  const { position } = await tx.one<{ position: number }>(sql`
    select t.position from recruitment.joining_cursor t
    where ${tenant(tx)} and t.program_id = ${program_id}
    for update`);
  return position;
}

/** A partner who joined, and the time. */
interface Joiner {
  partner_id: string;
  /** Null: the event's address was erased. */
  email: string | null;
  at: string;
}

const joinerOf = ({ data, created_at }: FollowedEvent): Joiner => ({
  partner_id: data.partner_id as string,
  email: typeof data.email === 'string' && data.email.includes('@') ? data.email : null,
  at: created_at,
});

/** "A partner whom an activation made tells no signed_up." */
async function unmade(tx: Tx, joiners: Joiner[]): Promise<Joiner[]> {
  const made = await tx.all<{ partner_id: string }>(sql`
    select t.partner_id from recruitment.deal t
    where ${tenant(tx)} and t.partner_id = any(${joiners.map(({ partner_id }) => partner_id)}) and not t.linked_existing`);
  const ids = new Set(made.map(({ partner_id }) => partner_id));
  return joiners.filter(({ partner_id }) => !ids.has(partner_id));
}

/** Signs up those who are invited prospects: in the order in which they joined, each once. */
async function signUpEach(tx: Tx, vault: Vault, program_id: string, joiners: Joiner[]): Promise<void> {
  if (joiners.length === 0) return;
  const matches = await matchesOf(tx, vault, program_id, joiners);
  const locked = await prospects.lockMany(tx, [...new Set(matches.map(({ prospect_id }) => prospect_id))]);
  const waiting = new Map(locked.filter(({ signed_up_at }) => signed_up_at === null).map((row) => [row.id, row]));
  for (const { prospect_id, partner_id, at } of matches) {
    const prospect = waiting.get(prospect_id);
    if (!prospect || !wasInvited(prospect, at)) continue;
    waiting.delete(prospect_id);
    const linked = prospect.partner_id === null ? await prospects.update(tx, prospect_id, { partner_id }) : prospect;
    await signUp(tx, linked, 'rail', nobody);
  }
}

/** Returns whether the invitation came first: somebody who was a partner before it did not follow it. */
const wasInvited = ({ invited_at }: Prospect, at: string): boolean =>
  invited_at !== null && Date.parse(invited_at) <= Date.parse(at);

interface Match extends Joiner {
  prospect_id: string;
}

/** The invited prospects of the program's brands who have the address or the token of a joiner, in the order of the joiners. */
async function matchesOf(tx: Tx, vault: Vault, program_id: string, joiners: Joiner[]): Promise<Match[]> {
  const hash = await keyedHash(tx, vault);
  const tokens = await invitationsOf(
    tx,
    joiners.map(({ partner_id }) => partner_id),
  );
  const given = joiners.map(({ partner_id, email }, nth) => ({
    nth,
    hmac: email === null ? null : hashesOf(hash, email).address_hmac.toString('hex'),
    token: tokens.get(partner_id) ?? null,
  }));
  const found = await tx.all<{ nth: number; prospect_id: string }>(sql`
    with joiner as (
      select j.nth, decode(j.hmac, 'hex') as hmac, j.token
      from json_to_recordset(${JSON.stringify(given)}::json) as j (nth integer, hmac text, token text)
    ),
    hit as (
      select j.nth, a.prospect_id
      from joiner j
      join recruitment.email_address a on a.organization_id = ${tx.organization_id} and a.address_hmac = j.hmac
      union
      select j.nth, p.id
      from joiner j
      join recruitment.prospect p on p.organization_id = ${tx.organization_id} and p.invitation_token = j.token
    )
    select h.nth, h.prospect_id
    from hit h
    join recruitment.prospect p on p.organization_id = ${tx.organization_id} and p.id = h.prospect_id
    join recruitment.brand b on b.organization_id = p.organization_id and b.id = p.brand_id
    where b.program_id = ${program_id} and b.deleted_at is null and p.invited_at is not null and p.signed_up_at is null
    order by h.nth, h.prospect_id`);
  return found.map(({ nth, prospect_id }) => ({ ...(joiners[nth] as Joiner), prospect_id }));
}
