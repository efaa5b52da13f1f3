/** Proving with a code of an app that it is the person whose session it is. */
import sql from 'sql-template-tag';
import type { Vault } from '../encryption/vault.ts';
import type { Tx } from '../postgres/transaction.ts';
import type { Session } from './session.ts';
import { stepOfCode } from './totp.ts';

/** Wrong codes in a row that end a session. */
const most_wrong = 5;
/** Wrong codes in all sessions of a user in a day, after which none is taken: each link to sign in gives another session. */
const most_wrong_a_day = 20;

interface Stored {
  totp_secret: Buffer | null;
  totp_step: number | null;
}

/** The app of a session's user, who stays locked: what is decided about codes at once is decided one after another. */
const lockedApp = (tx: Tx, { organization_id, user_id }: Session): Promise<Stored> =>
  tx.one<Stored>(sql`
    select u.totp_secret, u.totp_step from core.user_account u
    where u.organization_id = ${organization_id} and u.id = ${user_id}
    for no key update`);

/**
 * To be run for the whole service: a wrong code is counted, and the fifth ends the session. Codes that are sent at once wait for one another, and those that
 * come after the fifth wrong one are not looked at. @returns whether the code is right
 */
export async function confirmSession(tx: Tx, session: Session, code: string, vault: Vault): Promise<boolean> {
  const { organization_id, id } = session;
  const user_id = session.user_id as string;
  const { totp_secret, totp_step } = await lockedApp(tx, session);
  const { goes_on, wrong_codes } = await standingOf(tx, session);
  if (!goes_on || wrong_codes >= most_wrong_a_day) return false;
  const secret = totp_secret && Buffer.from(vault.decrypt(totp_secret, user_id), 'base64');
  const step = secret && stepOfCode(secret, code, Date.parse(tx.now), totp_step);
  if (step === null || step === undefined) {
    await tx.all(sql`
      update core.session s
      set wrong_codes = s.wrong_codes + 1, revoked_at = case when s.wrong_codes + 1 >= ${most_wrong} then ${tx.now}::timestamptz end
      where s.organization_id = ${organization_id} and s.id = ${id} and s.revoked_at is null`);
    return false;
  }
  await tx.all(sql`
    update core.user_account set totp_step = ${step} where organization_id = ${organization_id} and id = ${user_id}`);
  await tx.all(sql`
    update core.session set confirmed_at = ${tx.now}::timestamptz, wrong_codes = 0 where organization_id = ${organization_id} and id = ${id}`);
  return true;
}

/** Returns whether the session goes on, and how many wrong codes its user has given in a day. To be asked once the user is locked. */
const standingOf = (
  tx: Tx,
  { organization_id, user_id, id }: Session,
): Promise<{ goes_on: boolean; wrong_codes: number }> =>
  tx.one(sql`
    select
      coalesce(bool_or(s.id = ${id} and s.revoked_at is null), false) as goes_on,
      coalesce(sum(s.wrong_codes) filter (where s.last_seen_at > now() - interval '1 day'), 0)::int as wrong_codes
    from core.session s
    where s.organization_id = ${organization_id} and s.user_id = ${user_id}`);

/**
 * Keeps the secret of an app, once a code of it was given, and ends the other sessions of the user: they were opened by who had no such app. To be run for
 * the whole service. Nothing is kept for a session that was ended meanwhile, or that did not know of the app that there is by now: it gave no code of it.
 * @returns whether the code is right
 */
export async function keepTotp(
  tx: Tx,
  session: Session,
  { secret, code }: { secret: Buffer; code: string },
  vault: Vault,
): Promise<boolean> {
  const step = stepOfCode(secret, code, Date.parse(tx.now), null);
  if (step === undefined) return false;
  const { totp_secret } = await lockedApp(tx, session);
  if ((totp_secret !== null) !== session.has_totp || !(await standingOf(tx, session)).goes_on) return false;
  const user_id = session.user_id as string;
  await tx.all(sql`
    update core.user_account
    set totp_secret = ${vault.encrypt(secret.toString('base64'), user_id)}, totp_step = ${step}, updated_at = ${tx.now}::timestamptz
    where organization_id = ${session.organization_id} and id = ${user_id}`);
  await tx.all(sql`
    update core.session set confirmed_at = ${tx.now}::timestamptz, wrong_codes = 0
    where organization_id = ${session.organization_id} and id = ${session.id}`);
  await tx.all(sql`
    update core.session set revoked_at = coalesce(revoked_at, ${tx.now}::timestamptz), wrong_codes = 0
    where organization_id = ${session.organization_id} and user_id = ${user_id} and id <> ${session.id}`);
  return true;
}
