import { Command } from 'commander';
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
import { addRecruitmentCommands } from './recruitment.ts';

/** The command line: all commands, in the order of the help. */
export function createCommandLine(): Command {
  const rail = new Command('rail')
    .description(
      'Affiliate program and recruitment service: clicks, sales, commissions, prospects and signed webhooks on one Postgres.',
    )
    .version(pkg.version)
    .exitOverride()
    .enablePositionalOptions()
    .showHelpAfterError('Run it with --help for usage.')
    .configureHelp({ helpWidth: 120 })
    .addHelpText('after', environmentText);
  rail.commandsGroup('Run the service:');
  addProcessCommands(rail);
  rail.commandsGroup('Organizations and keys:');
  addAccessCommands(rail);
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
  return rail;
}

function environmentText(): string {
  const width = Math.max(...settings.map(({ name }) => name.length));
  const lines = settings.map(({ name, meaning, default_value }) => {
    const shown = default_value === undefined || default_value === false ? '' : ` (${default_value})`;
    return `  ${name.padEnd(width)}  ${meaning}${shown}`;
  });
  return `\nEnvironment:\n${lines.join('\n')}\n`;
}
