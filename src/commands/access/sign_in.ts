import sql from 'sql-template-tag';
import { link_minutes, makeSignInLink } from '../../core/access/session.ts';
import { transaction } from '../../core/postgres/transaction.ts';
import { baseUrlOf } from '../../service.ts';
import { answer, withStore } from '../command.ts';
import { readDemo } from '../demo.ts';

const service = { organization_id: null, request_id: null };

const noUser = (id: string): Error => new Error(`There is no user '${id}': 'npx --no rail user list' shows them.`);

/** @throws Error where there is no such user, or they were removed */
export const printSignInLink = (id: string, { json }: { json?: boolean }): Promise<void> =>
  withStore(async ({ config, store }) => {
    const token = await transaction(store, service, async (tx) => {
      const user = await tx.maybe<{ organization_id: string }>(sql`
        select organization_id from core.user_account where id = ${id} and removed_at is null`);
      if (!user) throw noUser(id);
      return makeSignInLink(tx, user.organization_id, id);
    });
    const base_url = config.BASE_URL ?? (await readDemo(config))?.base_url ?? baseUrlOf(config);
    const url = `${base_url}/dashboard/sign_in?token=${token}`;
    answer({ user_id: id, url }, { json, lines: [url, `It works once, within ${link_minutes} minutes.`] });
  });

/** @throws Error where there is no such user */
export const forgetApp = (id: string, { json }: { json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    await transaction(store, service, async (tx) => {
      const [user] = await tx.all(sql`
        update core.user_account set totp_secret = null, totp_step = null, updated_at = ${tx.now}::timestamptz where id = ${id} returning id`);
      if (!user) throw noUser(id);
      // Guesses at its codes are no guesses at those of the next one.
      await tx.all(sql`
        update core.session set revoked_at = coalesce(revoked_at, ${tx.now}::timestamptz), wrong_codes = 0 where user_id = ${id}`);
    });
    answer({ id }, { json, lines: [`Forgot the authenticator app of ${id}, and ended their sessions.`] });
  });
