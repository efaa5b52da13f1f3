import { type Command, Option } from 'commander';
import {
  example,
  filled,
  json,
  listed,
  networks,
  positiveInteger,
  theOnlyOrganization,
  time,
  wholeNumber,
} from './arguments.ts';

/** Organizations, users and keys. */
export function addAccessCommands(rail: Command): void {
  const org = rail
    .command('org')
    .summary('manages organizations')
    .description('Manages organizations, the tenants of the service.');

  org
    .command('create')
    .summary('creates an organization')
    .description('Creates an organization and its owner.')
    .requiredOption('--name <name>', 'name of the organization', filled)
    .requiredOption('--owner-email <email>', 'address that is notified of problems')
    .addOption(json())
    .addHelpText('after', example("npx --no rail org create --name 'Acme Inc.' --owner-email ada@acme.example.com"))
    .action(async (options) => (await import('../commands/access/org.ts')).createOrg(options));

  org
    .command('list')
    .summary('lists organizations')
    .description('Lists the organizations.')
    .addOption(json())
    .addHelpText('after', example('npx --no rail org list --json'))
    .action(async (options) => (await import('../commands/access/org.ts')).listOrgs(options));

  org
    .command('plan')
    .summary('shows or changes the plan of an organization')
    .description('Shows the plan of an organization in the recruitment service, or changes it.')
    .addOption(theOnlyOrganization())
    .addOption(new Option('--plan <name>', 'the new plan').choices(['starter', 'grow', 'enterprise']))
    .addOption(json())
    .addHelpText('after', example('npx --no rail org plan --organization org_… --plan grow'))
    .action(async (options) => (await import('../commands/access/plan.ts')).showPlan(options));

  const user = rail
    .command('user')
    .summary('manages the users of organizations')
    .description('Manages the users of organizations: the people whom keys belong to.');

  user
    .command('create')
    .summary('adds a person to an organization')
    .description(
      'Adds a person to an organization. A key can then belong to them, and approve the payouts that others created.',
    )
    .addOption(theOnlyOrganization())
    .requiredOption('--email <email>', "the person's email address")
    .option('--name <name>', "the person's name", filled)
    .addOption(json())
    .addHelpText(
      'after',
      example("npx --no rail user create --organization org_… --email grace@acme.example.com --name 'Grace Hopper'"),
    )
    .action(async (options) => (await import('../commands/access/user.ts')).createOrgUser(options));

  user
    .command('list')
    .summary('lists users')
    .description('Lists users.')
    .option('--org, --organization <id>', 'only users of this organization')
    .addOption(json())
    .addHelpText('after', example('npx --no rail user list --organization org_…'))
    .action(async (options) => (await import('../commands/access/user.ts')).listOrgUsers(options));

  user
    .command('update')
    .summary('changes the name or role of a user')
    .description('Changes the name or the role of a user. The last owner keeps the role.')
    .argument('<id>', 'id of the user: usr_…')
    .option('--name <name>', "the person's name", filled)
    .addOption(
      new Option('--role <role>', 'what the person may do in the dashboard').choices([
        'owner',
        'admin',
        'finance',
        'member',
        'viewer',
      ]),
    )
    .addOption(json())
    .addHelpText('after', example('npx --no rail user update usr_… --role owner'))
    .action(async (id, options) => (await import('../commands/access/user.ts')).updateOrgUser(id, options));

  user
    .command('sign-in')
    .summary('prints a link that signs a user in to the dashboard')
    .description(
      'Prints a link that signs a person in to the dashboard, once, within 15 minutes. Whoever has it is that person, so give it to nobody else.',
    )
    .argument('<id>', 'id of the user: usr_…')
    .addOption(json())
    .addHelpText('after', example('npx --no rail user sign-in usr_…'))
    .action(async (id, options) => (await import('../commands/access/sign_in.ts')).printSignInLink(id, options));

  user
    .command('forget-app')
    .summary('forgets the authenticator app of a user')
    .description(
      'Forgets the authenticator app of a person who has lost it, and ends their sessions. They set up another one.',
    )
    .argument('<id>', 'id of the user: usr_…')
    .addOption(json())
    .addHelpText('after', example('npx --no rail user forget-app usr_…'))
    .action(async (id, options) => (await import('../commands/access/sign_in.ts')).forgetApp(id, options));

  user
    .command('remove')
    .summary('removes a user')
    .description('Removes a person from their organization and revokes their keys. The last owner cannot be removed.')
    .argument('<id>', 'id of the user: usr_…')
    .addOption(json())
    .addHelpText('after', example('npx --no rail user remove usr_…'))
    .action(async (id, options) => (await import('../commands/access/user.ts')).removeOrgUser(id, options));

  const key = rail.command('key').summary('manages API keys').description('Manages the API keys of organizations.');

  key
    .command('create')
    .summary('creates a key')
    .description('Creates a key and prints it. It cannot be shown again.')
    .addOption(theOnlyOrganization())
    .requiredOption('--name <name>', 'name of the key', filled)
    .addOption(new Option('--mode <mode>', 'live or test').choices(['live', 'test']).default('live'))
    .option(
      '--scope <scopes...>',
      "scopes, separated by spaces or commas, such as partners:read; '*' allows everything (default: *)",
      listed,
    )
    .option('--rate-limit <number>', 'requests per second (default: 25)', positiveInteger)
    .option(
      '--user <id>',
      "the person whose key it is: it can approve payouts and, in the recruitment service, requests with it act as that person; 'npx --no rail user list' lists them",
    )
    .option('--expires-at <time>', 'when it expires, in ISO 8601 (default: never)', time)
    .option('--ip <networks...>', 'networks that it may be used from, such as 203.0.113.0/24 (default: all)', networks)
    .addOption(json())
    .addHelpText(
      'after',
      example("npx --no rail key create --organization org_… --name 'Checkout' --scope sales:write customers:write"),
    )
    .action(async (options) => (await import('../commands/access/key.ts')).createApiKey(options));

  key
    .command('list')
    .summary('lists keys')
    .description('Lists keys, without their secrets.')
    .option('--org, --organization <id>', 'only keys of this organization')
    .addOption(json())
    .addHelpText('after', example('npx --no rail key list --organization org_…'))
    .action(async (options) => (await import('../commands/access/key.ts')).listApiKeys(options));

  key
    .command('revoke')
    .summary('revokes a key')
    .description('Revokes a key: within a second, every process refuses it.')
    .argument('<id>', 'id of the key: key_…')
    .addOption(json())
    .addHelpText('after', example('npx --no rail key revoke key_…'))
    .action(async (id, options) => (await import('../commands/access/key.ts')).revokeApiKey(id, options));

  key
    .command('rotate')
    .summary('gives a key a new secret')
    .description('Gives a key a new secret and prints it. The one before stays valid for a while, and then is refused.')
    .argument('<id>', 'id of the key: key_…')
    .option('--overlap-hours <number>', 'hours for which the key before stays valid', wholeNumber, 24)
    .addOption(json())
    .addHelpText('after', example('npx --no rail key rotate key_… --overlap-hours 48'))
    .action(async (id, options) => (await import('../commands/access/key.ts')).rotateApiKey(id, options));

  key
    .command('update')
    .summary('changes what restricts a key')
    .description(
      'Changes the name of a key, its scopes, expiry and networks, or whether requests with it must be signed. Within a second, every process knows it. ' +
        'With --signature optional, a key works again whose owner cannot sign.',
    )
    .argument('<id>', 'id of the key: key_…')
    .option('--name <name>', 'name of the key', filled)
    .option('--scope <scopes...>', 'scopes, in place of those that it has', listed)
    .option('--expires-at <time>', 'when it expires, in ISO 8601', time)
    .option('--no-expires', 'it does not expire')
    .option('--ip <networks...>', 'networks that it may be used from, in place of those before', networks)
    .option('--any-ip', 'it may be used from everywhere')
    .addOption(new Option('--signature <kind>', 'whether requests must be signed').choices(['required', 'optional']))
    .addOption(json())
    .addHelpText(
      'after',
      example(
        'npx --no rail key update key_… --signature optional',
        'npx --no rail key update key_… --ip 203.0.113.0/24',
      ),
    )
    .action(async (id, options) => (await import('../commands/access/key.ts')).updateApiKey(id, options));
}
