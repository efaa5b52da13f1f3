import { type Command, Option } from 'commander';
import { example, integerUpTo, json, port, theOnlyOrganization } from './arguments.ts';

/** The inboxes of the recruitment service. */
export function addInboxCommands(rail: Command): void {
  const inbox = rail
    .command('inbox')
    .summary('connects, tests and lists inboxes')
    .description('Connects, tests and lists the inboxes that outreach is sent from and replies are read in.');
  const security = (protocol: string) =>
    new Option(`--${protocol}-security <kind>`, 'tls: from the start; starttls: by STARTTLS')
      .choices(['tls', 'starttls'])
      .default('tls');

  inbox
    .command('add')
    .summary('connects an inbox')
    .description(
      'Connects an inbox, as POST /recruitment/v1/inboxes does: both logins are tried first, and nothing is stored if one is refused. ' +
        'Secrets are read from standard input, a line each: the password, then the password of the IMAP server if it is another one; ' +
        'with --oauth the client secret, then the refresh token. On a terminal they are asked for, and not shown.',
    )
    .addOption(theOnlyOrganization())
    .requiredOption('--email <email>', 'address that emails are sent from')
    .requiredOption('--from-name <name>', 'name that emails are sent from')
    .option('--smtp-host <host>', 'server that sends')
    .option('--smtp-port <port>', 'its port (default: 465 with tls, 587 with starttls)', port)
    .addOption(security('smtp'))
    .option('--smtp-username <name>', 'its user name (default: the address)')
    .option('--imap-host <host>', 'server that receives')
    .option('--imap-port <port>', 'its port (default: 993 with tls, 143 with starttls)', port)
    .addOption(security('imap'))
    .option('--imap-username <name>', 'its user name (default: the address)')
    .addOption(
      new Option('--oauth <provider>', 'log in by OAuth 2 instead of passwords').choices(['google', 'microsoft']),
    )
    .option('--client-id <id>', 'with --oauth: id of your client at the provider')
    .option('--daily-limit <number>', 'maximum number of emails per day, up to 500 (default: 40)', integerUpTo(500))
    .option('--timezone <zone>', 'IANA time zone of these days (default: UTC)')
    .option('--reply-to <email>', 'where replies go, if not to the inbox')
    .option(
      '--authserv-id <name>',
      'first word of the Authentication-Results header that your server adds to each email that comes in (default: known for large providers)',
    )
    .addOption(json())
    .addHelpText(
      'after',
      example(
        'npx --no rail inbox add --organization org_… --email grace@acme.example.com --from-name Grace --smtp-host smtp.acme.example.com --imap-host imap.acme.example.com < password.txt',
        'npx --no rail inbox add --organization org_… --email grace@acme.example.com --from-name Grace --oauth google --client-id … < secrets.txt',
      ),
    )
    .action(async (options) => (await import('../commands/recruitment/inbox.ts')).addInbox(options));

  inbox
    .command('test')
    .summary('checks the logins of an inbox')
    .description('Tries both logins of an inbox. Nothing is sent or changed. Exit code 1 if one is refused.')
    .argument('<id>', 'id of the inbox: fin_…')
    .addOption(json())
    .addHelpText('after', example('npx --no rail inbox test fin_…'))
    .action(async (id, options) => (await import('../commands/recruitment/inbox.ts')).testInbox(id, options));

  inbox
    .command('list')
    .summary('lists inboxes')
    .description('Lists inboxes.')
    .option('--org, --organization <id>', 'only inboxes of this organization')
    .addOption(json())
    .addHelpText('after', example('npx --no rail inbox list --organization org_…'))
    .action(async (options) => (await import('../commands/recruitment/inbox.ts')).listInboxes(options));
}
