import { type Command, Option } from 'commander';
import { example, expiry, filled, integerUpTo, json, theOnlyOrganization } from './arguments.ts';

/** Data teams. */
export function addDataCommands(rail: Command): void {
  const data = rail
    .command('data')
    .summary('manages logins, exports changes, and prints the schemas for data teams')
    .description(
      "For data teams, who query the views of the schema 'data' in Postgres or by GraphQL, or keep a copy (/docs/data).",
    );

  data
    .command('graphql-schema')
    .summary('prints the GraphQL schema')
    .description(
      'Prints the schema of POST /graphql in the schema definition language, for tools that generate code from it.',
    )
    .addHelpText('after', example('npx --no rail data graphql-schema > schema.graphql'))
    .action(async () => (await import('../commands/data/print.ts')).printGraphqlSchema());

  data
    .command('dictionary')
    .summary("prints what is in the schema 'data'")
    .description("Prints what is in the schema 'data': every view and column with its description.")
    .addOption(
      new Option('--format <format>', 'markdown, json, or dbt for the sources.yml of a dbt project')
        .choices(['markdown', 'json', 'dbt'])
        .default('markdown'),
    )
    .addHelpText('after', example('npx --no rail data dictionary --format dbt > models/rail_sources.yml'))
    .action(async (options) => (await import('../commands/data/print.ts')).dictionary(options));

  data
    .command('export')
    .summary('prints what changed since a position, as NDJSON')
    .description(
      'Prints the objects of a resource, such as sales, or those that changed since a position, as NDJSON: on each line an object as the API has it, ' +
        'or {"id", "object", "deleted": true}, and on the last line the position for the next --since, which is valid for 90 days. ' +
        'Without the last line, the output is incomplete: discard it. Whatever reads the output may pause for up to a minute. ' +
        'The same as GET /v1/exports/{resource}.',
    )
    .argument('<resource>', 'what to export, such as sales')
    .option('--org, --organization <id>', "id of the organization (default: the demo's, or the only organization)")
    .option('--since <position>', 'the position on the last line of an earlier export of the resource')
    .option(
      '--personal-data',
      'export resources with personal data, and show notes, and emails in URLs, labels, user agents and reasons',
    )
    .addHelpText(
      'after',
      example(
        'npx --no rail data export clicks > clicks.ndjson',
        'npx --no rail data export sales --personal-data --since pos_…',
      ),
    )
    .action(async (resource, options) =>
      (await import('../commands/data/export.ts')).exportResource(resource, options),
    );

  const data_user = data
    .command('user')
    .summary("manages logins that read the schema 'data'")
    .description("Manages Postgres logins, each of which reads the rows of one organization in the schema 'data'.");

  data_user
    .command('create')
    .summary('creates a login')
    .description(
      "Creates a login that reads the rows of one organization in the schema 'data' and nothing else, and prints its URL. The password cannot be shown again. " +
        'If the user of DATABASE_URL may not create it, prints the SQL that a superuser runs.',
    )
    .addOption(theOnlyOrganization())
    .option('--name <name>', 'what the login is for', filled, 'Data team')
    .option('--personal-data', 'show emails, names and other personal columns')
    .option(
      '--expires <time>',
      'when the login expires: an ISO 8601 time, or a number of days such as 90d (default: never)',
      expiry,
    )
    .option('--statement-timeout <seconds>', 'how long a statement may run, up to 86400', integerUpTo(86_400), 60)
    .option('--connections <number>', 'maximum number of connections at a time, up to 100', integerUpTo(100), 5)
    .addOption(json())
    .addHelpText(
      'after',
      example("npx --no rail data user create --organization org_… --name 'Metabase' --expires 365d"),
    )
    .action(async (options) => (await import('../commands/data/user.ts')).createDataUser(options));

  data_user
    .command('list')
    .summary('lists logins')
    .description('Lists logins, without their passwords.')
    .option('--org, --organization <id>', 'only logins of this organization')
    .addOption(json())
    .addHelpText('after', example('npx --no rail data user list --organization org_…'))
    .action(async (options) => (await import('../commands/data/user.ts')).listDataUsers(options));

  data_user
    .command('revoke')
    .summary('revokes a login')
    .description('Revokes a login immediately, and ends its sessions.')
    .argument('<user>', 'the login: rail_data_…')
    .addOption(json())
    .addHelpText('after', example('npx --no rail data user revoke rail_data_…'))
    .action(async (user, options) => (await import('../commands/data/user.ts')).revokeDataUser(user, options));
}
