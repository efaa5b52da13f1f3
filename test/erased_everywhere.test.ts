/**
 * After a person is erased, no table of the database has their address or name, in whatever column: the test reads every row of every table, also of
 * tables that do not exist yet, jobs and what is encrypted included. What stays all the same is listed, with its reason.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { raw } from 'sql-template-tag';
import t from 'tap';
import { encrypted } from '../src/products.ts';
import { eventually, type Json, type Rail, services, sql, startRail } from './harness.ts';
import { mail, openOutreach, replyTo } from './recruitment/outreach/mailed.ts';
import { openShop } from './shop.ts';

/** Where the person may still be found. */
const stays: Record<string, string> = {
  'recruitment.host_pacing.host':
    'the host of any page that was visited, of no organization and no person, for an hour after the last visit',
  'core.idempotency_key.reply': 'the service promises the same reply for 24 hours; it is encrypted, and goes with them',
};

/** Parts of a name that no other text has. */
const person = { first: 'Zebulon', last: 'Quuxworth', email: 'zebulon@quuxworth.com' };
const needles = [person.first, person.last].flatMap((name) => [name, name.toLowerCase(), name.toUpperCase()]);
/** As it is, and as Postgres shows the bytes of it. */
const pattern = [...needles, ...needles.map((name) => Buffer.from(name).toString('hex'))].join('|');
const isNamed = (text: string): boolean => needles.some((name) => text.includes(name));

/** Finds the columns that name the person, as `schema.table.column`. */
async function traces(rail: Rail): Promise<string[]> {
  const tables = await rail.query<{ name: string }>(sql`
    select format('%I.%I', n.nspname, c.relname) as name
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and n.nspname !~ '^(pg_|information_schema)' and n.nspname <> 'migration'`);
  t.ok(tables.length > 90, `${tables.length} tables`);
  const found = new Set<string>();
  const any = new RegExp(pattern);
  for (const { name } of tables) {
    const rows = await rail.query<{ row: Json }>(
      sql`select to_jsonb(t) as row from ${raw(name)} t where t::text ~ ${pattern}`,
    );
    // Partitions are parts of their table.
    const table = name.replace(/_(\d{8}|default)$/, '');
    for (const { row } of rows)
      for (const [column, value] of Object.entries(row))
        if (any.test(JSON.stringify(value))) found.add(`${table}.${column}`);
  }
  for (const { table, id, columns } of encrypted)
    for (const column of columns) if (await isSealed(rail, table, id, column)) found.add(`${table}.${column}`);
  return [...found].sort();
}

async function isSealed(rail: Rail, table: string, id: string, column: string): Promise<boolean> {
  const rows = await rail.query<{ id: string; value: Buffer }>(
    sql`select ${raw(id)} as id, ${raw(column)} as value from ${raw(table)} where length(${raw(column)}) > 0`,
  );
  return rows.some((row) => isNamed(services.vault.decrypt(row.value, row.id)));
}

/** Until nothing is to be done any more that is not to be done later. */
async function atRest(rail: Rail): Promise<void> {
  const busy = sql`
    select from graphile_worker._private_jobs j where j.locked_at is not null or (j.run_at < now() + interval '5 seconds' and j.attempts < j.max_attempts)`;
  await eventually(async () => (await rail.query(busy)).length === 0, 'the jobs to be done');
}

/** A receiver that answers with what it was sent, and with an error in the path /fail. */
async function startEcho(): Promise<string> {
  const server = createServer((request, response) => {
    response.writeHead(request.url === '/fail' ? 500 : 200);
    request.pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const echo = await startEcho();
const { first, last, email } = person;

t.test('a customer who was erased is in no table', async (t) => {
  const rail = await startRail();
  const shop = await openShop(rail);
  const { merchant, program_id } = shop;
  for (const path of ['/well', '/fail']) await shop.endpoint(`${echo}${path}`);
  await shop.rule();
  const partner = await shop.partner();
  const click = await shop.click(partner, {
    landing_url: `https://acme.example.com/pricing?email=${email}#${last}`,
    referrer: `https://mail.example.com/?q=${first}`,
    visitor_token: `token-of-${first}`,
    user_agent: `Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0 ${first}`,
  });
  const sent = {
    ...{ program_id, click_id: click.id, email, name: `${first} ${last}`, identifier: `user-${last}` },
    ...{ external_customer_id: `cus-${last}`, metadata: { known_as: first } },
  };
  const customer = await merchant.post('/v1/customers', sent, { 'Idempotency-Key': 'sign-up' });
  await merchant.patch(`/v1/customers/${customer.id}`, { name: `${first} B. ${last}` });
  const bought = { customer_id: customer.id, external_subscription_id: `sub-${last}`, metadata: { buyer: first } };
  const sale = await shop.sale(bought);
  await shop.refund(sale, { amount_minor: 1_000 });
  const amount = { program_id, amount_minor: 5_000, currency: 'USD', external_charge_id: 'ch_bulk' };
  await merchant.request('POST', '/v1/sales/bulk', [{ ...amount, ...bought }]);
  const refused = await merchant.request('POST', '/v1/customers', { ...sent, click_id: undefined });
  t.ok(refused.status >= 400, 'what is refused leaves nothing');
  await atRest(rail);
  const before = await traces(rail);
  for (const column of [
    'program.customer.email',
    'program.click.landing_url',
    'webhooks.event.body',
    'webhooks.attempt.response_body',
  ])
    t.ok(before.includes(column), `${column} of ${before}`);
  await merchant.delete(`/v1/customers/${customer.id}`);
  await atRest(rail);
  t.same(
    (await traces(rail)).filter((column) => !(column in stays)),
    [],
  );
});

t.test('a prospect who was erased is in no table', async (t) => {
  const rail = await startRail();
  const outreach = await openOutreach(rail);
  const { caller, brand_id } = outreach;
  const v1 = '/recruitment/v1';
  for (const path of ['/well', '/fail']) await caller.post(`${v1}/webhook_endpoints`, { url: `${echo}${path}` });
  const search = { brand_id, search_type: 'url_list', query: `https://quuxworth.com/ https://other.example.com/` };
  await caller.request('POST', `${v1}/searches`, search);
  const name = `${first} ${last}`;
  const mailed = await mail(rail, outreach, {
    ...{ email, key: 'quuxworth.com', name, url: 'https://quuxworth.com/', description: `About ${first}` },
    custom: { known_as: first },
  });
  const { prospect_id } = mailed;
  const at = `${v1}/prospects/${prospect_id}`;
  await replyTo(rail, outreach, mailed, email, { text: `I am ${first}. What do you pay?` });
  await caller.post(`${at}/notes`, { text: `${first} called` });
  const list = await caller.post(`${v1}/lists`, { brand_id, name: 'Bakers' });
  await caller.post(`${at}/save`, { list_id: list.id });
  await caller.post(`${at}/emails`, { email: `${first}.${last}@gmail.com`.toLowerCase() });
  const document = `url,name,email\nhttps://quuxworth.com/,${name},${email}\n,${name},${first}@`;
  await caller.post(`${v1}/prospects/import`, { brand_id, document }, { 'Idempotency-Key': 'import' });
  await caller.post(`${at}/do_not_contact`, { reason: 'asked' }).catch(() => {});
  await caller.post(`${v1}/do_not_contact`, { kind: 'email', email }).catch(() => {});
  await atRest(rail);
  const before = await traces(rail);
  for (const column of [
    'recruitment.prospect.name',
    'recruitment.email_address.address',
    'recruitment.message.body_text',
  ])
    t.ok(before.includes(column), `${column} of ${before}`);
  await caller.delete(at);
  await atRest(rail);
  t.same(
    (await traces(rail)).filter((column) => !(column in stays)),
    [],
  );
});
