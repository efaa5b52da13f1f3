/**
 * The service's roles and what they may do: `sql/live/core/privileges.sql` and `sql/live/data/privileges.sql` say it, `rail migrate` sets it
 * right, `/readyz` looks at it.
 */
import type pg from 'pg';

type Session = Pick<pg.ClientBase, 'query'>;

/** The time for which a statement waits for the requests that use its table before it lets them go on, and the number of its tries. */
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

/**
 * The roles of the service, as which nobody logs in: requests run as the first, or, of a partner in the portal, as the second; the third owns the
 * views of schema data, the fourth reads them.
 */
const role_names = ['rail_api', 'rail_partner', 'rail_data', 'rail_data_reader'];

interface User {
  /** The user's name in SQL. */
  name: string;
  is_superuser: boolean;
  creates_roles: boolean;
}

interface Role {
  name: string;
  /** True if the role exists, and if this user can become it. */
  is_made: boolean;
  can_become: boolean;
}

/**
 * Makes sure that the roles of the service exist and that this user can become them. Roles belong to the whole server: another database on
 * it may have made them.
 * @param is_new whether the database has no migrations yet: the first one creates and grants `rail_api`, for which a mere member lacks the right
 * @throws Error with the statement to run, and who can run it
 */
export async function ensureRoles(client: Session, is_new: boolean): Promise<void> {
  const user = await readUser(client);
  const refused: string[] = [];
  for (const name of role_names) {
    const role = await readRole(client, name);
    const must_grant = is_new && name === 'rail_api';
    if (user.is_superuser && role.is_made) continue;
    if (must_grant || !role.is_made) await createRole(client, user, role);
    if ((must_grant || !role.can_become) && !(await grantRole(client, user, role))) refused.push(name);
  }
  if (refused.length > 0) throw mayNotBecome(user, refused);
}

async function readUser(client: Session): Promise<User> {
  const { rows } = await client.query<User>(`
    select format('%I', current_user) as name, u.rolsuper as is_superuser, u.rolcreaterole as creates_roles
    from pg_roles u
    where u.rolname = current_user`);
  return rows[0] as User;
}

async function readRole(client: Session, name: string): Promise<Role> {
  const { rows } = await client.query<Role>(
    `select $1::text as name, to_regrole($1) is not null as is_made,
      pg_has_role(
        to_regrole($1)::oid,
        case when current_setting('server_version_num')::integer < 160000 then 'MEMBER' else 'SET' end
      ) is true as can_become`,
    [name],
  );
  return rows[0] as Role;
}

async function createRole(client: Session, user: User, role: Role): Promise<void> {
  if (!user.is_superuser && !user.creates_roles) throw mayNotCreate(user, role, await rolesThatAreMade(client));
  if (role.is_made) return;
  await client.query(`create role ${role.name} nologin`).catch((error) => {
    if (!role_exists.includes(error.code)) throw error;
  });
}

async function rolesThatAreMade(client: Session): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    'select r.name from unnest($1::text[]) as r (name) where to_regrole(r.name) is not null',
    [role_names],
  );
  return rows.map(({ name }) => name);
}

function mayNotCreate({ name }: User, role: Role, made: string[]): Error {
  const granted = made.length > 0 ? ` grant ${made.join(', ')} to ${name} with admin option;` : '';
  return new Error(
    `The database user ${name} may not create the role ${role.name}: it lacks CREATEROLE. As a superuser, run: alter role ${name} createrole;${granted} Then run 'npx --no rail migrate' again.`,
  );
}

/** @returns false where it is not this user's to grant */
async function grantRole(client: Session, { name, is_superuser }: User, role: Role): Promise<boolean> {
  if (is_superuser) return true;
  try {
    await client.query(`grant ${role.name} to ${name}`);
    return true;
  } catch (error) {
    if ((error as { code?: string }).code !== insufficient_privilege) throw error;
    return false;
  }
}

function mayNotBecome({ name }: User, roles: string[]): Error {
  const [noun, all] = [roles.length === 1 ? 'role' : 'roles', roles.join(', ')];
  return new Error(
    `The database user ${name} may not become the ${noun} ${all}, which another user of this server created. As a superuser, or as a role with ADMIN OPTION on ${all}, run: grant ${all} to ${name} with admin option; Then run 'npx --no rail migrate' again.`,
  );
}

export interface Missing {
  subject: string;
  missing: string;
  statement: string;
}

/**
 * Sets right what the service's roles may do and how tables of organizations are protected. Each statement commits by itself and waits
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

/**
 * Sets right what a restored database has lost, as far as this user may. What it may not stops nothing: `rail audit` reports it too.
 * @param report takes what is left to run, a sentence each
 * @returns the statements that were run
 */
export async function restoreProtection(client: Session, report: (line: string) => void): Promise<string[]> {
  const lost = await readMissing(client, 'lost_protection');
  for (const { statement } of lost) await attempt(client, statement);
  // Postgres only warns where this user may not grant or revoke.
  const left = lost.length > 0 ? await readMissing(client, 'lost_protection') : [];
  for (const { subject, missing, statement } of left)
    report(`Data logins may do too much (${subject}: ${missing}). As a superuser, run: ${statement};`);
  const still = new Set(left.map(({ statement }) => statement));
  return lost.flatMap(({ statement }) => (still.has(statement) ? [] : [statement]));
}

/** Returns the privileges that the service's roles lack, and the tables that are not protected. */
export const missingPrivileges = (client: Session): Promise<Missing[]> => readMissing(client);

/** Returns the privileges that data logins have and must not have. */
export const lostProtection = (client: Session): Promise<Missing[]> => readMissing(client, 'lost_protection');

/** Each schema of the service may have a function that returns the privileges it lacks. */
async function readMissing(client: Session, name = 'missing_privileges'): Promise<Missing[]> {
  const { rows: functions } = await client.query<{ name: string }>(
    `
    select p.oid::regproc::text as name
    from pg_proc p
    join pg_namespace n on n.oid = p.pronamespace
    where p.proname = $1 and n.nspname in (select core.own_schemas())
    order by 1`,
    [name],
  );
  if (functions.length === 0) return [];
  const missing = functions.map(({ name }) => `select m.subject, m.missing, m.statement from ${name}() m`);
  return (await client.query<Missing>(missing.join(' union all '))).rows;
}

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
    `The database user may not set privileges right: ${first.subject}: ${first.missing}${more}. Restore the database as this user, or as the owner or a superuser run: ${refused.map(({ statement }) => `${statement};`).join(' ')} Then run 'npx --no rail migrate' again.`,
  );
}

function stillMissing(missing: Missing[]): Error {
  const each = missing.map((one) => `${one.subject}: ${one.missing} (${one.statement};)`);
  return new Error(
    `Some privileges could not be set. Run 'npx --no rail migrate' again when long queries have ended, or run these as a superuser: ${each.join(' ')}`,
  );
}

/**
 * Returns the reason why requests fail on a database with all migrations: the role `rail_api` does not exist, or lacks a privilege. Undefined where
 * none does.
 */
export async function whatStopsRequests(on: Pick<pg.Pool, 'query'>): Promise<string | undefined> {
  const { rows } = await on.query<{ subject: string; missing: string }>(
    'select m.subject, m.missing from core.missing_privileges() m where m.stops_requests limit 1',
  );
  const [first] = rows;
  return first && `${first.subject}: ${first.missing}`;
}
