import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { email, objectName, withDefaults } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { alreadyExists, Problem } from '../../core/values/problem.ts';
import { base_path } from '../events/base_path.ts';
import { requireRoom } from '../plan/plan.ts';
import { not_resting, wakeInbox } from '../sequences/wake_inbox.ts';
import { connect, readAgain, readAnew, readSoon } from './connection.ts';
import { login_fields, loginOf, namesLogin } from './given_login.ts';
import { type Inbox, inboxes } from './inbox.ts';
import { tryLogin } from './login.ts';
import { defaults, type Server, settings } from './settings.ts';
import { keepTokens, login_errors, loginColumns, storedLogin, tryStored } from './stored_login.ts';

const { from_name, ...optional } = settings;
const tried = 'Both logins are tried first. If one is refused,';

export const inboxOperations: Operation[] = [
  ...readOperations({ resource: inboxes, by: ['status', 'email'] }),
  operation({
    name: 'inboxes.create',
    title: 'Connect an inbox',
    method: 'POST',
    path: `${base_path}/inboxes`,
    scope: 'inboxes:write',
    summary: 'Connects an inbox: a mailbox to send from and to read replies in.',
    doc: `${tried} nothing is stored. Send \`smtp\` and \`imap\` with their passwords, or \`oauth\`. Emits \`inbox.connected\`.`,
    body: z.strictObject({ email, from_name, ...login_fields, ...withDefaults(optional, defaults) }),
    reply: inboxes.schema,
    status: 201,
    errors: [...login_errors, 'plan_limit_reached', 'resource_already_exists'],
    async ask({ body, services, read }) {
      const login = loginOf(body, body.email);
      requireGaps(body);
      await read((tx) => requireNew(tx, body.email));
      return { ...login, secrets: await tryLogin(login, services) };
    },
    async run({ tx, body, services, asked: login }) {
      const { smtp, imap, oauth, ...values } = body;
      await requireNew(tx, body.email);
      const id = newId('fin');
      const inbox = await inboxes.insert(tx, {
        ...{ ...values, id, connected_at: tx.now },
        ...loginColumns(id, login, login.secrets, services.vault),
      });
      return connect(tx, inbox as Inbox);
    },
  }),
  operation({
    name: 'inboxes.update',
    method: 'PATCH',
    path: `${base_path}/inboxes/{id}`,
    scope: 'inboxes:write',
    summary: 'Updates the settings or the login of an inbox.',
    doc: `If you send a login, both logins are tried first, with the stored one of the server that you do not send. If one is refused, the inbox is unchanged.`,
    params: idParams,
    body: z.strictObject({ ...login_fields, ...settings }).partial(),
    reply: inboxes.schema,
    errors: login_errors,
    async ask({ params, body, services, read }) {
      if (!namesLogin(body)) return undefined;
      const { inbox, login: before } = await read((tx) => storedLogin(tx, params.id, services.vault));
      const login = loginOf(body, inbox.email, before);
      return { ...login, secrets: await tryLogin(login, services) };
    },
    async run({ tx, params, body, services, asked: login }) {
      const inbox = await inboxes.get(tx, params.id, { lock: true });
      const { smtp, imap, oauth, ...values } = body;
      requireGaps({ ...inbox, ...values });
      // A limit that was raised holds from now on: the inbox looks again.
      if (limits.some((field) => values[field] !== undefined)) wakeInbox(tx, params.id);
      if (login) await readSoon(tx, params.id);
      if (values.authserv_id !== undefined) await readAgain(tx, params.id);
      if (login && isOtherMailbox(inbox.imap, login.imap)) await readAnew(tx, params.id);
      return inboxes.update(tx, params.id, {
        ...{ ...values, ...not_resting },
        ...(login ? loginColumns(params.id, login, login.secrets, services.vault) : {}),
      });
    },
  }),
  operation({
    name: 'inboxes.test',
    title: 'Test an inbox',
    method: 'POST',
    path: `${base_path}/inboxes/{id}/test`,
    scope: 'inboxes:write',
    summary: 'Tries the logins of an inbox. Nothing is sent.',
    params: idParams,
    reply: z.object({
      object: objectName('inbox_test'),
      ok: z.literal(true).describe('Both servers accepted the login.'),
    }),
    errors: login_errors,
    ask: ({ params, services, read }) => tryStored(params.id, services, read),
    async run({ tx, params, services, asked }) {
      await keepTokens(tx, params.id, asked, services);
      return { object: 'inbox_test' as const, ok: true as const };
    },
  }),
];

const isOtherMailbox = (one: Server, other: Server): boolean =>
  one.host !== other.host || one.username !== other.username;

const limits = ['daily_limit', 'ramp', 'timezone'] as const;

function requireGaps({ min_gap_s, max_gap_s }: { min_gap_s: number; max_gap_s: number }): void {
  if (min_gap_s <= max_gap_s) return;
  throw new Problem('invalid_parameter', "'max_gap_s' must not be less than 'min_gap_s'.", { param: 'max_gap_s' });
}

/**
 * Checks that the plan has room for an inbox with this address.
 * @throws Problem plan_limit_reached, resource_already_exists
 */
async function requireNew(tx: Tx, address: string): Promise<void> {
  await requireRoom(tx, 'inboxes', countInboxes);
  const known = await inboxes.find(tx, sql`${tenant(tx)} and lower(t.email) = lower(${address})`);
  if (known) throw alreadyExists('email', 'The email address is connected as another inbox.', known);
}

const countInboxes = (tx: Tx) =>
  tx.one<{ count: number }>(
    sql`select count(*)::integer as count from ${inboxes.from} where ${tenant(tx)} and ${inboxes.alive}`,
  );
