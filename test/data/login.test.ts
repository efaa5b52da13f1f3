/** From psql's side: what a login of a data team can read, and that it can do nothing else, whatever it sets. */
import pg from 'pg';
import sql, { raw } from 'sql-template-tag';
import t from 'tap';
import { withoutEmails } from '../../src/core/values/texts/without_emails.ts';
import { type NewLogin, revokeLogin } from '../../src/data/login.ts';
import { command } from '../command_process.ts';
import { eventually, startRail, startReceiver } from '../harness.ts';
import { connectAs, fillOrganization, newLogin, rowsOfBoth, viewsOf } from './tenant.ts';

const rail = await startRail();
const receiver = await startReceiver();
const [one, other] = [await fillOrganization(rail, receiver.url), await fillOrganization(rail, receiver.url)];
const views = await viewsOf(rail);
const login = await newLogin(rail, one.caller);
const psql = await connectAs(login);
const psql_of_other = await connectAs(await newLogin(rail, other.caller));

const refused = '42501';

t.test('shows every view to its organization, and no row of another one', async (t) => {
  for (const view of views) {
    const [rows, of_other] = await rowsOfBoth(
      [psql, psql_of_other],
      (each) => each.query(`select * from ${view}`),
      view,
    );
    t.same(
      rows.filter((row) => of_other.includes(row)),
      [],
      view,
    );
    t.notOk(
      rows.some((row) => row.includes(other.program_id)),
      `${view} names no program of the other organization`,
    );
  }
});

t.test('shows as many rows as the organization has', async (t) => {
  for (const noun of ['sale', 'partner', 'commission', 'click', 'customer', 'refund']) {
    const alive = ['click'].includes(noun) ? sql`true` : sql`deleted_at is null`;
    const [own] = await rail.query(
      sql`select count(*) from program.${raw(noun)} where organization_id = ${one.caller.organization_id} and ${alive}`,
    );
    t.same(await psql.query(`select count(*)::int as count from data.${noun}`), [own], noun);
  }
});

t.test('goes by who logged in, whatever is set', async (t) => {
  const before = await psql.query('select id from data.program order by id');
  const settings = {
    'rail.organization_id': other.caller.organization_id,
    'rail.sees_personal': 'on',
    row_security: 'on',
    search_path: 'program, core, data',
  };
  for (const [setting, value] of Object.entries(settings)) {
    await psql.query(`set ${setting} = '${value}'`);
    t.same(await psql.query('select id from data.program order by id'), before, setting);
  }
  await psql.query('set role rail_data_reader');
  t.same(await psql.query('select id from data.program order by id'), before, 'as the role of readers');
  await psql.query('reset role');
  t.same(await psql.query('select distinct email from data.partner'), [{ email: null }]);
  t.equal(await psql.codeOf('set row_security = off; select * from data.sale'), refused, 'says so where it is off');
  await psql.query('reset all');
  for (const role of ['rail_data', 'rail_api', new URL(rail.url).username])
    t.equal(await psql.codeOf(`set role ${role}`), refused, role);
  t.equal(await psql.codeOf(`set session authorization ${new URL(rail.url).username}`), refused);
});

t.test('shows personal columns only where that was asked for', async (t) => {
  const personal = await rail.query<{ view: string; column: string }>(sql`
    select format('data.%I', v.relname) as view, a.attname as column
    from pg_class v
    join pg_attribute a on a.attrelid = v.oid and a.attnum > 0
    where v.relnamespace = 'data'::regnamespace and v.relkind = 'v' and col_description(v.oid, a.attnum) like '%Personal: null unless%'`);
  t.ok(personal.length > 15);
  const seeing = await connectAs(await newLogin(rail, { ...one.caller, personal_data: true }));
  for (const { view, column } of personal) {
    const [{ shown } = { shown: undefined }] = await psql.query(`select count("${column}")::int as shown from ${view}`);
    t.equal(shown, 0, `${view}.${column}`);
  }
  const [partner] = await seeing.query("select email, first_name, metadata from data.partner where first_name = 'Ada'");
  t.match(partner, { email: /@partner\.example\.com$/, first_name: 'Ada', metadata: { note: 'ada' } });
  const emails = await psql.query(`
    select view.name from (
      ${views.map((view) => `select '${view}' as name, to_jsonb(x)::text as row from ${view} x`).join(' union all ')}
    ) as view where view.row ~ '[a-z0-9]@[a-z]' and view.name <> 'data.webhook_attempt'`);
  t.same(emails, [], 'no view shows an email address');
});

t.test('hides emails in URLs, labels and user agents unless personal data was asked for', async (t) => {
  const { caller, program_id } = one;
  const [partner] = (await caller.get(`/v1/partners?program_id=${program_id}`)).data;
  const landing_url =
    'https://acme.example.com/u/grace@secret.example.com?email=grace%40secret.example.com&utm_source=news&utm_term=grace@secret.example.com&utm_grace%40secret.example.com=1';
  const click = await caller.post('/v1/clicks', {
    ...{ program_id, value: partner.handle, landing_url, visitor_token: 'visitor-with-email' },
    referrer: 'https://mail.example.com/@inbox?next=%2Fwelcome%3Femail%3Dgrace%2540secret.example.com',
  });
  const robot = await caller.post('/v1/clicks', {
    ...{ program_id, value: partner.handle, landing_url: 'https://acme.example.com/', visitor_token: 'visitor-robot' },
    user_agent: 'robot (grace@secret.example.com)',
  });
  const link = await caller.post('/v1/links', {
    ...{ program_id, partner_id: partner.id, label: 'for grace@secret.example.com', value: `of-${partner.handle}` },
    destination_url: 'https://acme.example.com/u/grace@secret.example.com',
  });
  await eventually(
    async () => (await caller.get(`/v1/clicks/${click.id}`)).referral_id !== null,
    'the click to be credited',
  );
  const seeing = await connectAs(await newLogin(rail, { ...caller, personal_data: true }));
  const read = async ({ query }: typeof psql) => [
    ...(await query(`select landing_url, referer from data.click where id = '${click.id}'`)),
    ...(await query(`select user_agent from data.click where id = '${robot.id}'`)),
    ...(await query(
      `select r.landing_url, r.utm from data.referral r join data.click c on c.referral_id = r.id where c.id = '${click.id}'`,
    )),
    ...(await query(`select destination_url, url, label from data.link where id = '${link.id}'`)),
  ];
  const hidden = 'https://acme.example.com/u/hidden?email=hidden&utm_source=news&utm_term=hidden&hidden=1';
  t.same(await read(psql), [
    { landing_url: hidden, referer: 'https://mail.example.com/@inbox?next=hidden' },
    { user_agent: 'robot (hidden)' },
    { landing_url: hidden, utm: { source: 'news', term: 'hidden', hidden: '1' } },
    {
      ...{ destination_url: 'https://acme.example.com/u/hidden', label: 'for hidden' },
      url: `https://acme.example.com/u/hidden?ref=of-${partner.handle}`,
    },
  ]);
  const { destination_url, url, label } = link;
  t.match(await read(seeing), [
    { landing_url },
    { user_agent: 'robot (grace@secret.example.com)' },
    { landing_url, utm: { term: 'grace@secret.example.com' } },
    { destination_url, url, label },
  ]);
});

t.test('hides emails in reasons unless personal data was asked for, and notes', async (t) => {
  const { caller, program_id } = one;
  const reason = 'asked by grace@secret.example.com';
  const partner = await caller.post('/v1/partners', { program_id, email: `reasons-${program_id}@partner.example.com` });
  const bonus = await caller.post('/v1/commissions', { program_id, partner_id: partner.id, amount_minor: 100 });
  await caller.post(`/v1/commissions/${bonus.id}/void`, { reason });
  const charge = { amount_minor: 100, currency: 'USD', external_charge_id: 'ch_reasons' };
  const { id } = await caller.post('/v1/sales', { program_id, partner_id: partner.id, ...charge });
  await caller.post(`/v1/sales/${id}/refund`, { amount_minor: 1, reason });
  await caller.patch(`/v1/partners/${partner.id}`, { status: 'suspended', suspension_reason: reason });
  const group = await caller.post('/v1/groups', { program_id, name: 'Reasons', description: reason });
  const tag = await caller.post('/v1/tags', { program_id, name: reason });
  const hook = { program_id, url: 'https://93.184.215.14/hook', description: reason };
  const endpoint = await caller.post('/v1/webhook_endpoints', hook);
  const read = ({ query }: typeof psql) =>
    query(`
      select void_reason as reason from data.commission where id = '${bonus.id}'
      union all select cause from data.commission_entry where commission_id = '${bonus.id}' and kind = 'voided'
      union all select cause from data.partner_ledger where commission_id = '${bonus.id}' and kind = 'voided'
      union all select suspension_reason from data.partner where id = '${partner.id}'
      union all select reason from data.refund where sale_id = '${id}' and reason like 'asked by %'
      union all select description from data."group" where id = '${group.id}'
      union all select name from data.tag where id = '${tag.id}'
      union all select description from data.webhook_endpoint where id = '${endpoint.id}'`);
  const each = (shown: string) => Array.from({ length: 8 }, () => ({ reason: shown }));
  t.same(await read(psql), each('asked by hidden'));
  t.same(await read(await connectAs(await newLogin(rail, { ...caller, personal_data: true }))), each(reason));
});

/** Texts with emails, and what is shown of them. */
const emails = {
  'for "a b"@x.example.com': 'for hidden',
  'for ada @ x.example.com, now': 'for hidden, now',
  'ada＠x.example.com': 'hidden',
  'ada&#64;x.example.com': 'hidden',
  'ada&#x40;x.example.com': 'hidden',
  'ada&commat;x.example.com': 'hidden',
  'ada[at]x.example.com': 'hidden',
  'ada (AT) x.example.com': 'hidden',
  "of o'brien@x.com": 'of hidden',
  'ada AT x.example.com': 'hidden',
  'to ada @ x . example.com': 'to hidden',
  'ada at example dot com': 'hidden',
  'ada<at>x.example.com': 'hidden',
  'ada_at_x.example.com': 'hidden',
  'ada\n@x.example.com': 'hidden',
  'ada @x.example.com': 'hidden',
  'https://a.example.com/?e=ada&#64;x.example.com': 'https://a.example.com/?e=hidden',
  'https://a.example.com/?e=ada&ref=b#64;x.example.com': 'https://a.example.com/?e=ada&ref=hidden',
  '/?e=ada%EF%BC%A0x.example.com&f=b%25EF%25B9%25ABx.example.com': '/?e=hidden&f=hidden',
  '/?e=ada＠x.example.com': '/?e=hidden',
  'meet at noon. Bring it': 'meet at noon. Bring it',
  'meet at 9 . then': 'meet at 9 . then',
  'sold at shop.example.com': 'sold at shop.example.com',
  'BUY AT SHOP.EXAMPLE.COM': 'BUY AT SHOP.EXAMPLE.COM',
  'look at the dot com': 'look at the dot com',
  '/img/photo_at_night.jpg?created_at=1': '/img/photo_at_night.jpg?created_at=1',
  '2 @ 3.50 EUR': '2 @ 3.50 EUR',
  'issue #64; closed': 'issue #64; closed',
  'Berlin @ night': 'Berlin @ night',
  'Berlin @ night. Bring it': 'Berlin @ night. Bring it',
  'see @ada on x.example.com': 'see @ada on x.example.com',
};

t.test('hides the same emails in SQL as in events', async (t) => {
  const urls = [
    ...['', 'https://acme.example.com/', 'https://medium.example.com/@ada', 'https://acme.example.com/40%?a=@'],
    ...['https://u:p@acme.example.com/?a=b%40c.example.com&d=e', 'grace@a.example.com, "ada@b.example.com"; x'],
    ...[
      'https://acme.example.com/?n=%252Fu%252Fa%25252540b#c@d',
      'https://acme.example.com/ä@ö.example.com/@@/a@@b/%40x',
    ],
  ];
  for (const url of [...urls, ...Object.keys(emails)])
    t.same(
      await psql.query(`select data.without_emails(${pg.escapeLiteral(url)}) as url`),
      [{ url: withoutEmails(url) }],
      url,
    );
  for (const [text, shown] of Object.entries(emails)) t.equal(withoutEmails(text), shown, text);
});

t.test('reads nothing but schema data', async (t) => {
  const tables = await rail.query<{ name: string }>(sql`
    select c.oid::regclass::text as name from pg_class c
    where c.relkind in ('r', 'p', 'v', 'm', 'S')
      and c.relnamespace::regnamespace::text in ('core', 'webhooks', 'program', 'recruitment', 'migration', 'graphile_worker')`);
  t.ok(tables.length > 40);
  for (const { name } of tables) t.equal(await psql.codeOf(`select * from ${name}`), refused, name);
  for (const call of [
    'core.enqueue(\'[{"identifier": "core/purge_expired"}]\')',
    "core.open_request('org_none', null)",
    'data.end_sessions()',
    "graphile_worker.add_job('x')",
  ])
    t.equal(await psql.codeOf(`select ${call}`), refused, call);
});

t.test('writes nothing to the log of Postgres, whatever it sets', async (t) => {
  const logged = await newLogin(rail, one.caller);
  const before = await connectAs(logged);
  await before.query('set default_transaction_read_only = off');
  await before.query('alter role current_user reset all');
  await before.query("alter role current_user set debug_print_plan = 'on'");
  t.equal(await before.codeOf('alter role current_user reset log_min_messages'), refused);
  t.equal(await before.codeOf("alter role current_user set log_min_messages = 'log'"), refused);
  t.equal(await before.codeOf("set log_min_messages = 'log'"), refused);
  const after = await connectAs(logged);
  t.same(await after.query('show log_min_messages'), [{ log_min_messages: 'fatal' }]);
  await t.rejects(connectAs({ url: `${logged.url}?options=-c%20log_min_messages%3Dlog` }), { code: refused });
});

t.test('fills no more of the disk than it may', async (t) => {
  t.same(await psql.query('show temp_file_limit'), [{ temp_file_limit: '2GB' }]);
  t.equal(await psql.codeOf('set temp_file_limit = -1'), refused);
  await rail.query(raw_limit(login.user, '1MB'));
  const limited = await connectAs(login);
  const sorted = 'select n, repeat(n::text, 100) from generate_series(1, 100000) n order by 2 offset 99999';
  t.equal(await limited.codeOf(`set work_mem = '64kB'; ${sorted}`), '53400');
});

const raw_limit = (user: string, limit: string) =>
  sql`alter role ${raw(user)} set temp_file_limit = ${raw(`'${limit}'`)}`;

t.test('a worker ends the sessions of logins that expire', async (t) => {
  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  const expiring = await newLogin(rail, { ...one.caller, expires_at });
  const client = await connectAs(expiring);
  t.equal((await client.query('select * from data.organization')).length, 1);
  await rail.query(
    sql`update core.data_login set expires_at = now() - interval '1 second' where role_name = ${expiring.user}`,
  );
  await t.rejects(
    client.query('select * from data.organization'),
    { code: '28000', message: 'This data login has expired.' },
    'it sees nothing at once, and is told why',
  );
  await eventually(async () => (await client.codeOf('select 1')) !== 'allowed', 'the end of the session');
  const [role] = await rail.query(sql`select rolvaliduntil as until from pg_roles where rolname = ${expiring.user}`);
  t.equal(role?.until, expires_at, 'nor does Postgres let it log in again');
});

t.test('undoes what a login changed of itself', async (t) => {
  const changing = await newLogin(rail, one.caller);
  const own = sql`select setdatabase, setconfig from pg_db_role_setting where setrole = to_regrole(${changing.user}) order by 1`;
  const before = await rail.query(own);
  const client = await connectAs(changing);
  const { pathname } = new URL(rail.url);
  for (const statement of [
    'set default_transaction_read_only = off',
    'alter role current_user set statement_timeout = 0',
    "alter role current_user set work_mem = '64GB'",
    `alter role current_user in database ${pathname.slice(1)} set idle_in_transaction_session_timeout = 0`,
    "alter role current_user password 'x'",
  ])
    await client.query(statement);
  await client.end();
  await t.rejects(connectAs(changing), { code: '28P01' });
  await rail.tick('data/restore_logins', '2031-01-01T00:00:00Z');
  await eventually(
    () =>
      connectAs(changing).then(
        () => true,
        () => false,
      ),
    'the password that it was given',
  );
  t.same(await rail.query(own), before);
});

t.test('limits connections, and stores no password that could be read', async (t) => {
  const single = await newLogin(rail, { ...one.caller, connection_limit: 1 });
  const first = await connectAs(single);
  await t.rejects(connectAs(single), { code: '53300' });
  await first.end();
  const [stored] = await rail.query<{ stored: string }>(sql`
    select rolpassword as stored from pg_authid where rolname = ${single.user}`);
  t.match(stored?.stored, /^SCRAM-SHA-256\$4096:/);
  const [login_row] = await rail.query(sql`select verifier from core.data_login where role_name = ${single.user}`);
  t.equal(login_row?.verifier, stored?.stored);
  const [{ found } = { found: 1 }] = await rail.query<{ found: number }>(sql`
    select count(*) as found from core.data_login l where to_jsonb(l)::text like ${`%${new URL(single.url).password}%`}`);
  t.equal(found, 0);
});

t.test('a revoked login sees nothing, and is gone', async (t) => {
  const gone = await newLogin(rail, one.caller);
  const client = await connectAs(gone);
  t.match(await revokeLogin(rail.store, gone.user), { user: gone.user, sql: [] });
  t.not(await client.codeOf('select 1'), 'allowed');
  await t.rejects(connectAs(gone), { code: '28P01' });
  t.equal(await revokeLogin(rail.store, 'rail_data_none'), undefined);
  t.match(await revokeLogin(rail.store, gone.user), { user: gone.user, sql: [] }, 'also when it is revoked again');
});

t.test('a revoked login is gone, also where it owns something', async (t) => {
  const gone = await newLogin(rail, one.caller);
  const client = await connectAs(gone);
  await client.query('set default_transaction_read_only = off');
  await client.query("alter role current_user password 'weak'");
  await client.query('alter default privileges grant select on tables to public');
  t.match(await revokeLogin(rail.store, gone.user), { user: gone.user, role: 'dropped', reason: null, sql: [] });
  t.same(await rail.query(sql`select from pg_roles where rolname = ${gone.user}`), []);
});

t.test('a revoked login cannot log in, also where its role cannot be dropped', async (t) => {
  const kept = await newLogin(rail, one.caller);
  const elsewhere = new URL(rail.url);
  elsewhere.pathname = '/postgres';
  const other_database = new pg.Client({ connectionString: elsewhere.href });
  await other_database.connect();
  t.teardown(() => other_database.end());
  await other_database.query(`alter default privileges for role ${kept.user} grant select on tables to public`);
  const drops = [`drop owned by "${kept.user}"`, `drop role "${kept.user}"`];
  t.match(await revokeLogin(rail.store, kept.user), { role: 'closed', reason: /database postgres/, sql: drops });
  await t.rejects(connectAs(kept), { code: '28P01' });
  const list = ['data', 'user', 'list', '--organization', one.caller.organization_id, '--json'];
  const { stdout } = await command(list, { DATABASE_URL: rail.url });
  t.match(
    JSON.parse(stdout).find(({ user }: { user: string }) => user === kept.user),
    { state: 'revoked' },
  );
  const again = await command(['data', 'user', 'revoke', kept.user], { DATABASE_URL: rail.url });
  t.match(again.stdout, /it can no longer read anything or log in\. Its Postgres role is still there/);
  t.match(again.stdout, drops.map((drop) => `${drop};`).join('\n'));
  await other_database.query(`drop owned by ${kept.user}`);
  t.match(await revokeLogin(rail.store, kept.user), { role: 'dropped' });
});

t.test('the command line makes, lists and revokes logins', async (t) => {
  const environment = { DATABASE_URL: rail.url };
  const runRail = async (...args: string[]) => {
    const { code, stdout, stderr } = await command(['data', 'user', ...args, '--json'], environment);
    t.equal(stderr, '', args.join(' '));
    t.equal(code, 0, args.join(' '));
    return JSON.parse(stdout);
  };
  const { organization_id } = one.caller;
  const made: NewLogin = await runRail(
    'create',
    '--organization',
    organization_id,
    '--expires',
    '90d',
    '--personal-data',
  );
  t.match(made, { organization_id, personal_data: true, statement_timeout_ms: 60_000, connection_limit: 5, sql: [] });
  const days = (Date.parse(made.expires_at as string) - Date.now()) / 86_400_000;
  t.ok(days > 89.9 && days <= 90);
  t.equal((await (await connectAs(made)).query('select * from data.organization')).length, 1);
  const listed = await runRail('list', '--organization', organization_id);
  t.match(listed[0], { user: made.user, state: 'active' });
  t.notOk(JSON.stringify(listed).includes(new URL(made.url).password), 'and shows no password again');
  t.match(await runRail('revoke', made.user), { user: made.user });
  t.match((await runRail('list', '--organization', organization_id))[0], { user: made.user, state: 'revoked' });

  const unknown = await command(['data', 'user', 'create', '--organization', 'org_none'], environment);
  t.match(unknown, { code: 1, stderr: /There is no organization 'org_none'/ });
  const past = ['data', 'user', 'create', '--organization', organization_id, '--expires', '2020-01-01T00:00:00Z'];
  t.match(await command(past, environment), { code: 2, stderr: /must be in the future/ });
  const unnamed = ['data', 'user', 'create', '--organization', organization_id, '--name', ' '];
  t.match(await command(unnamed, environment), { code: 2, stderr: /'--name <name>'.* must not be empty/ });
});
