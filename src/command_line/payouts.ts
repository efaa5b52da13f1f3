import { type Command, Option } from 'commander';
import { example, filled, json, positiveInteger, time } from './arguments.ts';

/** Payouts to partners. */
export function addPayoutCommands(rail: Command): void {
  const payouts = rail
    .command('payouts')
    .summary('previews, creates, sends and follows payouts')
    .description('Previews, creates, sends and follows payouts to partners.');

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
      example('npx --no rail payouts preview --program prg_…', 'npx --no rail payouts preview --program prg_… --json'),
    )
    .action(async (options) => (await import('../commands/payouts/preview.ts')).previewPayouts(options));

  payouts
    .command('run')
    .summary('creates a batch of payouts')
    .description(
      'Creates a batch of payouts and follows it until its payouts are created, then shows the sums by currency and the balances that are not paid. ' +
        "Payouts are sent by 'npx --no rail payouts send', or when they are due if the program sends automatically. Requires a running worker, such as that of npm start. Ctrl-C ends the command and leaves the batch to the worker.",
    )
    .addOption(program())
    .option('--cutoff <time>', 'include commissions that are mature before this ISO 8601 time (default: now)', time)
    .option('--due-at <time>', "when the payouts are due (default: the cut-off plus the program's payout term)", time)
    .addOption(json())
    .addHelpText('after', example('npx --no rail payouts run --program prg_… --cutoff 2027-01-01T00:00:00Z'))
    .action(async (options) => (await import('../commands/payouts/run.ts')).runPayouts(options));

  payouts
    .command('status')
    .summary('shows batches and the states of their payouts')
    .description(
      'Shows the latest batches, their payouts by status and currency, and the errors of those that failed. At most 20 batches.',
    )
    .option('--program <id>', 'only batches of this program')
    .option('--batch <id>', 'only this batch')
    .addOption(json())
    .addHelpText(
      'after',
      example('npx --no rail payouts status --program prg_…', 'npx --no rail payouts status --batch batch_…'),
    )
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
    .addHelpText('after', example('npx --no rail payouts export --batch batch_… --out payouts.xml'))
    .action(async (options) => (await import('../commands/payouts/export.ts')).exportPayouts(options));

  addActions(payouts);
}

/** Adds the actions on one payout, or on those of a batch. */
function addActions(payouts: Command): void {
  const act = (name: string, summary: string, description: string) =>
    payouts
      .command(name)
      .summary(summary)
      .description(description)
      .option('--payout <id>', 'only this payout')
      .option('--batch <id>', 'those of this batch')
      .addOption(json());
  const run = (action: 'send' | 'retry' | 'mark_paid') => async (options: object) =>
    (await import('../commands/payouts/action.ts')).actOnPayouts(action, options);

  act(
    'send',
    'sends pending payouts',
    'Sends a pending payout, or all of a batch, as the API does: by paypal, wise or stripe a worker asks the provider to pay; by bank_transfer, wire or crypto ' +
      "they go into a file, which 'npx --no rail payouts export' writes.",
  )
    .addHelpText(
      'after',
      example('npx --no rail payouts send --batch batch_…', 'npx --no rail payouts send --payout pyt_…'),
    )
    .action(run('send'));

  act(
    'retry',
    'sends failed payouts again',
    'Sends a failed payout, or all of a batch, again: to the payout method that the partner has now, and of the full amount.',
  )
    .addHelpText(
      'after',
      example('npx --no rail payouts retry --batch batch_…', 'npx --no rail payouts retry --payout pyt_…'),
    )
    .action(run('retry'));

  act(
    'mark-paid',
    'records that payouts were paid',
    'Records that a payout was paid outside of Rail, or those of a batch that were sent by bank_transfer, wire or crypto.',
  )
    .option('--external-id <id>', 'id of the payment, such as a transaction id', filled)
    .option('--paid-at <time>', 'when it was paid, an ISO 8601 time (default: now)', time)
    .addOption(
      new Option('--status <statuses...>', 'of a batch: payouts of these statuses (default: processing)').choices([
        'pending',
        'processing',
        'failed',
      ]),
    )
    .option('--file <number>', 'of a batch: only the payouts that were last sent in this file', positiveInteger)
    .addHelpText(
      'after',
      example(
        'npx --no rail payouts mark-paid --payout pyt_… --external-id 4711',
        'npx --no rail payouts mark-paid --batch batch_… --file 1',
      ),
    )
    .action(run('mark_paid'));
}
