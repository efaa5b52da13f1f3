import { type Command, Option } from 'commander';
import { example, json, positiveInteger, time } from './arguments.ts';

/** Payouts to partners. */
export function addPayoutCommands(rail: Command): void {
  const payouts = rail
    .command('payouts')
    .summary('previews, creates and follows payouts')
    .description('Previews, creates and follows payouts to partners.');

  const program = () => new Option('--program <id>', 'id of the program (default: the only one)');

  payouts
    .command('preview')
    .summary('shows who would be paid what')
    .description(
      'Shows what a batch of payouts would contain: the sums by currency, who would be paid, and who would not and why. Creates nothing.',
    )
    .addOption(program())
    .option('--cutoff <time>', 'include commissions that are mature before this ISO 8601 time (default: now)', time)
    .addOption(json())
    .addHelpText(
      'after',
      example('rail payouts preview --program prg_…', 'rail payouts preview --program prg_… --json'),
    )
    .action(async (options) => (await import('../commands/payouts/preview.ts')).previewPayouts(options));

  payouts
    .command('run')
    .summary('creates a batch of payouts')
    .description(
      'Creates a batch of payouts and follows it until its payouts are created, then shows the sums by currency and the balances that are not paid. ' +
        'A payout is sent by a request, or when it is due if the program sends automatically. Requires a running worker, such as that of rail start. Ctrl-C ends the command and leaves the batch to the worker.',
    )
    .addOption(program())
    .option('--cutoff <time>', 'include commissions that are mature before this ISO 8601 time (default: now)', time)
    .option('--due-at <time>', "when the payouts are due (default: the cut-off plus the program's payout term)", time)
    .addOption(json())
    .addHelpText('after', example('rail payouts run --program prg_… --cutoff 2027-01-01T00:00:00Z'))
    .action(async (options) => (await import('../commands/payouts/run.ts')).runPayouts(options));

  payouts
    .command('status')
    .summary('shows batches and what became of their payouts')
    .description(
      'Shows the latest batches, their payouts by status and currency, and the errors of those that failed. At most 20 batches.',
    )
    .option('--program <id>', 'only batches of this program')
    .option('--batch <id>', 'only this batch')
    .addOption(json())
    .addHelpText('after', example('rail payouts status --program prg_…', 'rail payouts status --batch batch_…'))
    .action(async (options) => (await import('../commands/payouts/status.ts')).showPayouts(options));

  payouts
    .command('export')
    .summary("writes a batch's payment file")
    .description(
      'Writes the payment file of a batch whose payouts were sent: pain.001 for bank_transfer and wire, CSV for crypto, the same bytes each time. ' +
        'It holds the account numbers of partners.',
    )
    .requiredOption('--batch <id>', 'id of the batch')
    .option('--file <number>', 'number of the file, if the batch has several', positiveInteger)
    .option('--out <file>', 'write to this file, which only you can read (default: standard output)')
    .addHelpText('after', example('rail payouts export --batch batch_… --out payouts.xml'))
    .action(async (options) => (await import('../commands/payouts/export.ts')).exportPayouts(options));
}
