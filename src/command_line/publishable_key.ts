import { type Command, Option } from 'commander';
import { example, filled, json, listed } from './arguments.ts';

/** Publishable keys, for the pages of websites. */
export function addPublishableKeyCommands(rail: Command): void {
  const key = rail
    .command('publishable-key')
    .summary('manages publishable keys')
    .description('Manages publishable keys: they stand in web pages, record clicks and leads, and open nothing else.');

  key
    .command('create')
    .summary('creates a publishable key')
    .description(
      'Creates a publishable key, and prints the script element for your pages and the secret that signs leads.',
    )
    .option('--program <id>', "id of the program (default: the demo's, or the only program)")
    .requiredOption('--origin <origins...>', 'origins of your pages, such as https://acme.example.com', listed)
    .option('--name <name>', 'name of the key', filled)
    .addOption(new Option('--mode <mode>', 'live or test').choices(['live', 'test']))
    .addOption(json())
    .addHelpText(
      'after',
      example('npx --no rail publishable-key create --program prg_… --origin https://acme.example.com'),
    )
    .action(async (options) => (await import('../commands/access/publishable_key.ts')).createPublishableKey(options));

  key
    .command('list')
    .summary('lists publishable keys')
    .description('Lists publishable keys, and whether the pages that use them are first party.')
    .option('--program <id>', 'only keys of this program')
    .addOption(json())
    .addHelpText('after', example('npx --no rail publishable-key list'))
    .action(async (options) => (await import('../commands/access/publishable_key.ts')).listPublishableKeys(options));

  key
    .command('revoke')
    .summary('revokes a publishable key')
    .description(
      'Revokes a publishable key: within a second, every process refuses it. Pages that use it go on to work.',
    )
    .argument('<id>', 'id of the key: pub_…')
    .addOption(json())
    .addHelpText('after', example('npx --no rail publishable-key revoke pub_…'))
    .action(async (id, options) =>
      (await import('../commands/access/publishable_key.ts')).revokePublishableKey(id, options),
    );
}
