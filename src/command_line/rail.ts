import { Command, type Help } from 'commander';
import pkg from '../../package.json' with { type: 'json' };
import { settings } from '../config.ts';
import { addAccessCommands } from './access.ts';
import { addCampaignCommands } from './campaign.ts';
import { addDataCommands } from './data.ts';
import { addInboxCommands } from './inbox.ts';
import { addMailCommands } from './mail.ts';
import { addOperatingCommands } from './operation.ts';
import { addPayoutCommands } from './payouts.ts';
import { addProcessCommands } from './processes.ts';
import { addProgramCommands } from './program.ts';
import { addPublishableKeyCommands } from './publishable_key.ts';
import { addQueueCommands } from './queue.ts';
import { addRecruitmentCommands } from './recruitment.ts';

/** The width of help: as wide as the terminal, and never wider than a person reads. */
const widest = Math.min(process.stdout.columns || 120, 120);

/** The command line: all commands, in the order of the help. */
export function createCommandLine(): Command {
  const rail = new Command('npx --no rail')
    .description(
      'Affiliate program and recruitment service: clicks, sales, commissions, prospects and signed webhooks on one Postgres.',
    )
    .version(pkg.version)
    .exitOverride()
    .enablePositionalOptions()
    .showHelpAfterError('Run it with --help for usage.')
    .configureHelp({ helpWidth: widest })
    .configureOutput({ outputError: (text, write) => write(errorText(text)) })
    .addHelpText('after', ({ command }) => environmentText(command.createHelp()));
  rail.commandsGroup('Run the service:');
  addProcessCommands(rail);
  rail.commandsGroup('Organizations and keys:');
  addAccessCommands(rail);
  addPublishableKeyCommands(rail);
  rail.commandsGroup('Affiliate program:');
  addProgramCommands(rail);
  addPayoutCommands(rail);
  rail.commandsGroup('Recruitment:');
  addRecruitmentCommands(rail);
  addInboxCommands(rail);
  addCampaignCommands(rail);
  addMailCommands(rail);
  rail.commandsGroup('Data teams:');
  addDataCommands(rail);
  rail.commandsGroup('Operation:');
  addOperatingCommands(rail);
  addQueueCommands(rail);
  rail.helpCommand(true);
  return rail;
}

/** A command that takes no arguments names those that it was given: it may be the default of the command that was typed. */
const errorText = (text: string): string =>
  text
    .replace(
      /^error: too many arguments for '([a-z-]+)'\. Expected 0 arguments but got \d+: /,
      "rail: '$1' takes no arguments. Unknown: ",
    )
    .replace(/^error: /, 'rail: ');

function environmentText(help: Help): string {
  const width = Math.max(...settings.map(({ name }) => name.length));
  help.prepareContext({ helpWidth: widest });
  const lines = settings.map(({ name, meaning, default_value }) => {
    const shown = default_value === undefined || default_value === false ? '' : ` (${default_value})`;
    return help.formatItem(name, width, `${meaning}${shown}`, help);
  });
  return `\nEnvironment:\n${lines.join('\n')}\n`;
}
