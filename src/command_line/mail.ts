import { type Command, Option } from 'commander';
import { example, repeated } from './arguments.ts';

/** Incoming mail. */
export function addMailCommands(rail: Command): void {
  const mail = rail.command('mail').summary('classifies incoming mail').description('Classifies incoming mail.');

  mail
    .command('classify')
    .alias('judge')
    .summary('classifies each mail: own copy, complaint, bounce, automatic reply, unsubscribe or reply')
    .description(
      'Classifies incoming mail. Each mail is an own copy (sent from an address of --own), a complaint, a bounce (of which address, and whether it is permanently ' +
        'undeliverable), an automatic reply (until when), an unsubscribe, or a reply (the new text, its language and kind). ' +
        'The service classifies mail by the same code. Reads no database. ' +
        'Exit code 1 if a file could not be read.',
    )
    .argument('[files...]', 'files that hold one mail each (RFC 5322); - is standard input (default: -)')
    .option(
      '--jsonl',
      'read texts instead, from standard input: a JSON document per line with id, text and optionally subject; takes no files',
    )
    .option('--own <address>', 'address of the inbox, whose mail is an own copy; can be given several times', repeated)
    .addOption(new Option('--json', 'print one JSON document per line'))
    .addHelpText(
      'after',
      example(
        'npx --no rail mail classify mailbox/*.eml',
        'npx --no rail mail classify --json - < bounce.eml',
        `echo '{"id": "1", "subject": "Re: Program", "text": "Sounds good!"}' | npx --no rail mail classify --jsonl --json`,
      ),
    )
    .action(async (files, options) => (await import('../commands/mail/classify.ts')).classify(files, options));
}
