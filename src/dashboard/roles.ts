/** The scopes of each role in the dashboard: the one table. */
import type { Role } from '../core/access/user.ts';
import { known_scopes } from '../core/resource/scope.ts';
import { sending_settings } from '../program/update_program.ts';

/** Resources whose changes move money or open access. */
const money = ['commissions', 'payouts', 'sales', 'rules', 'risk_flags'];
const access = ['keys', 'users', 'webhooks', 'publishable_keys', 'recruitment_webhooks', 'team'];

const isRead = (scope: string): boolean => scope.endsWith(':read');
const isOf = (scope: string, resources: string[]): boolean => resources.includes(scope.split(':')[0] as string);

const may: Record<Role, (scope: string) => boolean> = {
  owner: () => true,
  // The operations themselves refuse what concerns owners.
  admin: () => true,
  finance: (scope) => isOf(scope, money),
  member: (scope) => !isOf(scope, [...money, ...access]),
  viewer: () => false,
};

/** The scopes of a role: every read, and the changes that it may make. An owner has all, and can give them to a key. */
export const scopesOf = (role: Role): string[] =>
  role === 'owner'
    ? ['*']
    : ['*:read', ...[...known_scopes].filter((scope) => scope !== '*' && !isRead(scope) && may[role](scope))];

interface Operating {
  role: Role;
  session: { organization_id: string };
  services: { operator_organization?: string | undefined };
}

/** Returns whether a person runs the service: an owner or an admin of the organization that `RAIL_OPERATOR_ORGANIZATION` names. */
export const isOperator = ({ role, session, services }: Operating): boolean =>
  session.organization_id === services.operator_organization && (role === 'owner' || role === 'admin');

/** Scopes that move money or open access: whoever uses them proves with a code that it is them. */
const confirmed = ['payouts:send', 'payouts:write', 'keys:write', 'users:write', 'team:write'];
/** Operations of other scopes that lead to where a partner is paid. */
const paying_operations = ['partners.put_payout_method', 'partners.create_magic_link'];
/** Operations of other scopes that say whose word a sale is, and where events go. */
const trusting_operations = [
  ...['processors.put', 'processors.delete'],
  ...['', 'recruitment_'].flatMap((product) =>
    ['create', 'update', 'rotate_secret'].map((verb) => `${product}webhook_endpoints.${verb}`),
  ),
];
/** Fields of other operations that decide how much is paid, or whether without a person, and the scope for that. */
const scopes_of_fields: Record<string, string> = {
  rate_override: 'rules:write',
  ...Object.fromEntries(sending_settings.map((name) => [name, 'payouts:send'])),
};

/** @param fields that are changed, or could be */
export const needsCode = ({ name, scope }: { name: string; scope: string }, fields: string[] = []): boolean =>
  confirmed.includes(scope) ||
  paying_operations.includes(name) ||
  trusting_operations.includes(name) ||
  fields.some((field) => confirmed.includes(scopes_of_fields[field] ?? ''));

/** Returns whether a role may say something in a field of an operation that it may run. */
export const maySay = (role: Role, field: string): boolean => mayDo(role, scopes_of_fields[field] ?? ':read');

export const mayDo = (role: Role, scope: string): boolean => isRead(scope) || may[role](scope);

/** Returns whether a role may run an operation: a member says nowhere where a partner is paid, and signs in as none. */
export const mayRun = (role: Role, { name, scope }: { name: string; scope: string }): boolean =>
  mayDo(role, scope) && !(role === 'member' && paying_operations.includes(name));
