/** People of an organization, signed in. */
import { makeSignInLink } from '../../src/core/access/session.ts';
import { createUser } from '../../src/core/access/user.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { type Caller, type Rail, sql } from '../harness.ts';
import { type Browser, browse } from './browse.ts';

const service = { organization_id: null, request_id: null };

export interface Colleague {
  user_id: string;
  email: string;
  /** The path of a link that signs them in. */
  link(): Promise<string>;
}

/** A new user of the organization. */
export async function colleague(rail: Rail, { organization_id }: Caller, role = 'owner'): Promise<Colleague> {
  const email = `person_${crypto.randomUUID()}@example.com`;
  const { id: user_id } = await createUser(rail.store.database, { organization_id, email });
  await rail.query(sql`update core.user_account set role = ${role} where id = ${user_id}`);
  const link = async () =>
    `/dashboard/sign_in?token=${await transaction(rail.store, service, (tx) => makeSignInLink(tx, organization_id, user_id))}`;
  return { user_id, email, link };
}

/** A browser without scripts in which a new user of the organization has signed in. Its session is confirmed by a code, unless told otherwise. */
export async function signedIn(
  rail: Rail,
  merchant: Caller,
  role = 'owner',
  is_confirmed = false,
): Promise<Browser & Colleague> {
  const { user_id, email, link } = await colleague(rail, merchant, role);
  const browser = browse(rail.address);
  await browser.submit((await browser.get(await link())).forms[0]);
  if (is_confirmed) await rail.query(sql`update core.session set confirmed_at = now() where user_id = ${user_id}`);
  return { ...browser, user_id, email, link };
}
