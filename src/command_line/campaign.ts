import type { Command } from 'commander';
import { example, json } from './arguments.ts';

/** Adds the commands about campaigns of outreach. */
export function addCampaignCommands(rail: Command): void {
  const campaign = rail.command('campaign').summary('shows campaigns').description('Shows the state of campaigns.');

  campaign
    .command('status')
    .summary('shows the state of campaigns')
    .description(
      'Shows campaigns: their state, sequences by state, emails sent today (UTC), what the next email waits for, and when that is over. Nothing in WAITS FOR: an email is being sent. ' +
        'Without an id, those that are scheduled, sending or paused, at most 50. With --follow, the table is kept up to date until Ctrl-C, or until every campaign has ended.',
    )
    .argument('[id]', 'id of a campaign: fca_…')
    .option('--org, --organization <id>', 'only campaigns of this organization')
    .option('--brand <id>', 'only campaigns of this brand')
    .option('--all', 'also drafts, stopped and finished campaigns')
    .option('--follow', 'keep the table up to date')
    .addOption(json())
    .addHelpText(
      'after',
      example('npx --no rail campaign status --follow', 'npx --no rail campaign status fca_… --json'),
    )
    .action(async (id, options) => (await import('../commands/recruitment/campaign.ts')).showCampaigns(id, options));
}
