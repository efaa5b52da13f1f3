/** The API's role and what it may do: `sql/live/core/privileges.sql` says it, `rail migrate` sets it right, `/readyz` looks at it. */
import type pg from 'pg';

type Session = Pick<pg.ClientBase, 'query'>;

/** How long a statement waits for the requests that use its table before it lets them go on, and how often it is tried. */
const lock_timeout_ms = 2_000;
const most_passes = 15;

const insufficient_privilege = '42501';
const lock_not_available = '55P03';
/** Two sessions that create one role at a time. */
const role_exists = ['42710', '23505'];

/** @throws Error where the database was restored as another user, which owns everything in it: this one could migrate nothing */
export async function requireOwnership(client: Session): Promise<void> {
  const { rows } = await client.query<{ user: string; schema: string; owner: string }>(`
    select current_user as user, n.nspname as schema, pg_get_userbyid(n.nspowner) as owner
    from pg_namespace n
    where n.nspname in ('migration', 'graphile_worker') and not pg_has_role(n.nspowner, 'USAGE')`);
  const [first] = rows;
  if (!first) return;
  const { user, schema, owner } = first;
  throw new Error(
    `The schema ${schema} belongs to ${owner}, and the database user is ${user}. Restore the backup as ${user}, with pg_restore --no-owner, or set DATABASE_URL to ${owner}.`,
  );
}

interface User {
  /** As SQL writes it. */
  name: string;
  is_superuser: boolean;
  creates_roles: boolean;
  /** Whether the role is there, and whether this user can become it. */
  is_made: boolean;
  can_become: boolean;
}

/**
 * Makes sure that the role `rail_api` exists and that this user can become it. Roles belong to the whole server: another database on it may
 * have made the role.
 * @param is_new whether the database has no migrations yet: the first one creates and grants the role, for which a mere member lacks the right
 * @throws Error with the statement to run, and who can run it
 */
export async function ensureRole(client: Session, is_new: boolean): Promise<void> {
  const user = await readUser(client);
  if (user.is_superuser && user.is_made) return;
  if (is_new || !user.is_made) await createRole(client, user);
  if (is_new || !user.can_become) await grantRole(client, user);
}

async function readUser(client: Session): Promise<User> {
  const { rows } = await client.query<User>(`
    select format('%I', current_user) as name, u.rolsuper as is_superuser, u.rolcreaterole as creates_roles,
      to_regrole('rail_api') is not null as is_made,
      pg_has_role(
        to_regrole('rail_api')::oid,
        case when current_setting('server_version_num')::integer < 160000 then 'MEMBER' else 'SET' end
      ) is true as can_become
    from pg_roles u
    where u.rolname = current_user`);
  return rows[0] as User;
}

async function createRole(client: Session, { name, is_superuser, creates_roles, is_made }: User): Promise<void> {
  if (!is_superuser && !creates_roles) {
    const granted = is_made ? ` grant rail_api to ${name} with admin option;` : '';
    throw new Error(
      `The database user ${name} may not create the role rail_api: it lacks CREATEROLE. As a superuser, run: alter role ${name} createrole;${granted} Then run 'rail migrate' again.`,
    );
  }
  if (is_made) return;
  await client.query('create role rail_api nologin').catch((error) => {
    if (!role_exists.includes(error.code)) throw error;
  });
}

async function grantRole(client: Session, { name, is_superuser }: User): Promise<void> {
  if (is_superuser) return;
  await client.query(`grant rail_api to ${name}`).catch((error) => {
    if (error.code !== insufficient_privilege) throw error;
    throw new Error(
      `The database user ${name} may not become the role rail_api, which another user of this server created. As a superuser, or as a role with ADMIN OPTION on rail_api, run: grant rail_api to ${name} with admin option; Then run 'rail migrate' again.`,
    );
  });
}

interface Missing {
  subject: string;
  missing: string;
  statement: string;
}

/**
 * Sets right what the role `rail_api` may do and how tables of organizations are protected. Each statement commits by itself and waits
 * for no request for long.
 * @returns the statements that were run; none where all is as it should be
 * @throws Error with what is still missing
 */
export async function setPrivileges(client: Session): Promise<string[]> {
  const ran: string[] = [];
  await client.query(`set lock_timeout = ${lock_timeout_ms}`);
  let missing = await readMissing(client);
  for (let pass = 1; missing.length > 0; pass++) {
    if (pass > most_passes) throw stillMissing(missing);
    const refused: Missing[] = [];
    for (const one of missing) {
      const outcome = await attempt(client, one.statement);
      if (outcome === 'done') ran.push(one.statement);
      if (outcome === 'refused') refused.push(one);
    }
    if (refused.length > 0) throw notAllowed(refused);
    missing = await readMissing(client);
  }
  return ran;
}

const readMissing = async (client: Session): Promise<Missing[]> =>
  (await client.query<Missing>('select subject, missing, statement from core.missing_privileges()')).rows;

async function attempt(client: Session, statement: string): Promise<'done' | 'locked' | 'refused'> {
  try {
    await client.query(statement);
    return 'done';
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === lock_not_available) return 'locked';
    if (code === insufficient_privilege) return 'refused';
    throw new Error(`${statement} failed: ${(error as Error).message}`, { cause: error });
  }
}

function notAllowed(refused: Missing[]): Error {
  const [first] = refused as [Missing];
  const more = refused.length > 1 ? `, and ${refused.length - 1} more` : '';
  return new Error(
    `The database user may not set privileges right: ${first.subject}: ${first.missing}${more}. Restore the database as this user, or as the owner or a superuser run: ${refused.map(({ statement }) => `${statement};`).join(' ')} Then run 'rail migrate' again.`,
  );
}

function stillMissing(missing: Missing[]): Error {
  const each = missing.map((one) => `${one.subject}: ${one.missing} (${one.statement};)`);
  return new Error(
    `Some privileges could not be set. Run 'rail migrate' again when long queries have ended, or run these as a superuser: ${each.join(' ')}`,
  );
}

/** What stops requests on a database with all migrations: the role `rail_api` is not there, or lacks a privilege. Undefined where nothing does. */
export async function whatStopsRequests(on: Pick<pg.Pool, 'query'>): Promise<string | undefined> {
  const { rows } = await on.query<{ subject: string; missing: string }>(
    'select m.subject, m.missing from core.missing_privileges() m where m.stops_requests limit 1',
  );
  const [first] = rows;
  return first && `${first.subject}: ${first.missing}`;
}
