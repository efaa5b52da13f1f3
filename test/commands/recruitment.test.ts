import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { command } from '../command_process.ts';
import { encryption_key, type Json, sql, startRail } from '../harness.ts';
import { rail as runRail } from '../rail_process.ts';
import { blog, scannedBrand, shop, startWeb } from '../recruitment/discovery/web.ts';
import { authority_certificate, password, startMailbox } from '../recruitment/mailbox.ts';
import { openSender } from '../recruitment/outreach/outreach.ts';

const web = await startWeb();
const sites = ['one.test', 'two.test'];
for (const host of sites) web.sites.set(host, { '/': blog(`Blog at ${host}`) });
web.sites.set('shop.test', { '/': shop });
const service = await startRail({ own: { name_servers: web.name_servers } });
const environment = { DATABASE_URL: service.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };
const rail = (...args: string[]) => command(args, environment);

const brandAt = async (host: string): Promise<Json> =>
  scannedBrand(await service.organization(), { website_url: web.at(host), competitors: ['rival.test'] });
const [brand, away] = await Promise.all([brandAt('shop.test'), brandAt('gone.test')]);
const urls = sites.map((host) => web.at(host)).join('\n');

t.test('starts a search, follows it and the scan behind it, and lists both', async (t) => {
  const asked = ['search', '--brand', brand.id, '--type', 'url_list', '--query', urls, '--max-results', '2'];
  const { code, stdout, stderr } = await rail(...asked, '--follow');
  t.equal(code, 0, stderr);
  const [, search_id, scan_id] =
    /^(fsc_\w+) is done\.\n2 results, 2 new prospects, USD 0\.00 spent\.\n\n(fsc_\w+) is done\.\n/.exec(stdout) ?? [];
  t.match(stdout, /\nTrigger search: 2 of 2 pages visited, 2 prospects found, USD 0\.00 spent\.\n$/);
  t.match(stderr, new RegExp(`^Following ${search_id}\\. Ctrl-C leaves it to the worker\\.\n`));
  t.match(stderr, '2 of at most 2 results, 2 new prospects\n');
  t.match(stderr, '2 of 2 pages visited');

  const [shown, searches, scans, cancelled] = await Promise.all([
    rail('search', 'status', search_id as string, '--json'),
    rail('search', 'list', '--brand', brand.id),
    rail('scan', 'list', '--brand', brand.id, '--json'),
    rail('search', 'cancel', search_id as string),
  ]);
  t.match(JSON.parse(shown.stdout), { object: 'search', id: search_id, state: 'done', max_results: 2, scan_id });
  t.match(searches.stdout, /^SEARCH +BRAND +CREATED AT +TYPE +STATE +RESULTS +NEW +SPENT +FOR\n/);
  t.match(
    searches.stdout,
    new RegExp(`\n${search_id} +${brand.id} +20\\S+Z +url_list +done +2 +2 +USD 0\\.00 +http://one`),
  );
  t.match(JSON.parse(scans.stdout), [
    { id: scan_id, trigger: 'search' },
    { trigger: 'first', state: 'failed' },
  ]);
  t.match(cancelled, { code: 1, stdout: '', stderr: /^rail: The search is 'done'.*\n$/ });
});

t.test('ends with exit code 1 and the error where what was followed fails', async (t) => {
  const [search, scan] = await Promise.all([
    rail('search', '--brand', away.id, '--query', 'ovens', '--json'),
    rail('scan', '--brand', away.id, '--follow'),
  ]);
  t.match(search, { code: 0, stderr: '' });
  const { id } = JSON.parse(search.stdout);
  const error = 'The website could not be reached.';
  const [, scan_id] = /^(fsc_\w+) is failed: /.exec(scan.stdout) ?? [];
  t.match(scan, { code: 1, stdout: `${scan_id} is failed: ${error}\nTrigger manual: 0 of 0 pages` });
  t.match(scan.stderr, new RegExp(`\nrail: ${scan_id} failed: ${error}\n$`));

  const [followed, shown] = await Promise.all([
    rail('search', 'status', id, '--follow', '--json'),
    rail('scan', 'status', scan_id as string),
  ]);
  t.match(JSON.parse(followed.stdout), { id, state: 'failed', credit_refunded: true, scan: null });
  t.match(followed, { code: 1, stderr: new RegExp(`\n?rail: ${id} failed: .+\\.\n$`) });
  t.match(shown, { code: 0, stderr: '', stdout: scan.stdout });
});

t.test('says what is wrong in one line', async (t) => {
  const wrong: [string[], number, RegExp][] = [
    [['search', '--query', 'ovens'], 2, /^rail: Which brand\? Give --brand with one of fbr_/],
    [['search', '--brand', brand.id], 2, /^rail: --query is required/],
    [
      ['search', '--brand', brand.id, '--countries', 'Narnia'],
      2,
      /^rail: --countries must be 2 letters, such as DE\.\n$/,
    ],
    [
      ['search', '--brand', brand.id, '--type', 'channel'],
      2,
      /^rail: --channels is required for the search type 'channel'\.\n$/,
    ],
    [['scan', '--brand', 'fbr_unknown'], 1, /^rail: There is no brand 'fbr_unknown'\.\n$/],
    [['scan', 'status', 'fsc_unknown'], 1, /^rail: There is no scan 'fsc_unknown'\.\n$/],
  ];
  const ended = await Promise.all(wrong.map(([args]) => rail(...args)));
  for (const [nth, [args, code, stderr]] of wrong.entries())
    t.match(ended[nth], { code, stdout: '', stderr }, args.join(' '));
});

t.test('connects an inbox with secrets from standard input, tries its logins, and lists it', async (t) => {
  const trusted = join(t.testdir(), 'authority.pem');
  const [mailbox, { organization_id }] = await Promise.all([
    startMailbox(),
    service.organization(),
    writeFile(trusted, authority_certificate),
  ]);
  const settings = { ...environment, RAIL_WEBHOOK_ALLOW_PRIVATE: '1', NODE_EXTRA_CA_CERTS: trusted };
  const serverOf = (protocol: 'smtp' | 'imap') => [
    ...[`--${protocol}-host`, 'localhost', `--${protocol}-port`, `${mailbox[protocol].port}`],
    ...[`--${protocol}-username`, 'grace'],
  ];
  const tenant = ['--organization', organization_id];
  const sender = ['inbox', 'add', ...tenant, '--email', 'grace@acme.com', '--from-name', 'Grace'];
  const add = [...sender, ...serverOf('smtp'), ...serverOf('imap')];
  const oauth = [...sender, '--oauth', 'google', '--client-id', 'client'];
  // The login trusts the authority of the test, which a process reads at its start.
  const denied = await runRail(t, add, settings, `${password}\nwrong\n`);
  t.match(denied, { code: 1, stdout: '', stderr: /^rail: The IMAP server refused the login\./ });
  const refused: [string[], string, number, RegExp][] = [
    [[...add, '--timezone', 'Mars/Olympus'], `${password}\n`, 2, /^rail: 'timezone' .*IANA time zone/],
    [add, '', 2, /^rail: Send the password on standard input\.\n$/],
    [sender, password, 2, /^rail: --smtp-host and --imap-host are required, or --oauth\.\n$/],
    [oauth, 'client-secret\n', 2, /^rail: Send the client secret and the refresh token/],
  ];
  const ended = await Promise.all(refused.map(([args, input]) => command(args, settings, input)));
  for (const [nth, [args, , code, stderr]] of refused.entries())
    t.match(ended[nth], { code, stdout: '', stderr }, args.join(' '));
  t.match(await rail('inbox', 'test', 'fin_unknown'), {
    code: 1,
    stdout: '',
    stderr: /^rail: There is no inbox 'fin_unknown'/,
  });
  t.match(await rail('inbox', 'list', '--organization', 'org_unknown'), {
    ...{ code: 1, stdout: '', stderr: /^rail: There is no organization 'org_unknown'/ },
  });
  t.equal((await rail('inbox', 'list', ...tenant)).stdout, 'There is no inbox.\n');

  const added = await runRail(
    t,
    [...add, '--daily-limit', '60', '--authserv-id', 'mx.acme.com', '--json'],
    settings,
    `${password}\n`,
  );
  t.match(added, { code: 0, stderr: '' });
  t.notMatch(added.stdout, password);
  const inbox = JSON.parse(added.stdout);
  t.match(inbox, {
    object: 'inbox',
    email: 'grace@acme.com',
    daily_limit: 60,
    authserv_id: 'mx.acme.com',
    smtp: { security: 'tls' },
  });
  const [tested, listed] = await Promise.all([
    runRail(t, ['inbox', 'test', inbox.id], settings),
    rail('inbox', 'list', ...tenant),
  ]);
  t.match(tested, { code: 0, stdout: `Both logins of ${inbox.id} work.\n` });
  t.match(listed.stdout, new RegExp(`\n${inbox.id} +grace@acme\\.com +connected +60 +UTC +20`));
});

t.test('shows what campaigns do, and names what does not exist', async (t) => {
  const { post, organization_id } = await service.organization();
  const brand = await post('/recruitment/v1/brands', { name: 'Acme', website_url: 'https://acme.example.com' });
  const { id } = await post('/recruitment/v1/campaigns', { brand_id: brand.id, name: 'Blogs' });
  const tenant = ['--organization', organization_id];
  const mail_server = { host: 'localhost', port: 465, security: 'tls', username: 'grace', password: 'none' };
  const sender = await openSender(service, (await service.organization()).organization_id, {
    mailbox: { smtp: mail_server, imap: mail_server },
  });
  await service.query(
    sql`update recruitment.inbox set rests_until = '2126-01-01T00:00:00Z', rests_for = 'cap' where id = any(${sender.inbox_ids})`,
  );
  const [none, all, one, unknown, capped] = await Promise.all([
    rail('campaign', 'status', ...tenant),
    rail('campaign', 'status', ...tenant, '--all', '--follow'),
    rail('campaign', 'status', id, '--json'),
    rail('campaign', 'status', 'fca_unknown'),
    rail('campaign', 'status', sender.campaign_id),
  ]);
  t.match(capped.stdout, /Spring +sending +1 +0 +0 +0 +0 +0 +0 +daily limit of the inbox +2126-01-01T00:00:00\.000Z\n/);
  t.match(none, { code: 0, stdout: 'No campaign matches.\n' });
  t.match(all, { code: 0, stdout: new RegExp(`\n${id} +Blogs +draft +0 +0 +0 +0 +0 +0 +0 +draft`) });
  t.match(JSON.parse(one.stdout), [
    { id, state: 'draft', sequences: { waiting: 0 }, sent_today: 0, unknown: 0, next_due_at: null },
  ]);
  t.match(unknown, { code: 1, stderr: /^rail: There is no campaign 'fca_unknown'/ });
});
