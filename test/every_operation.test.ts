import { isDeepStrictEqual } from 'node:util';
import { raw } from 'sql-template-tag';
import t from 'tap';
import { media_types } from '../src/core/formats/format.ts';
import { findTasks } from '../src/core/jobs/task.ts';
import { transaction } from '../src/core/postgres/transaction.ts';
import type { Operation } from '../src/core/resource/operation.ts';
import { api_version } from '../src/core/values/api.ts';
import { type ProblemCode, problems } from '../src/core/values/problem.ts';
import { operations } from '../src/operations.ts';
import { schedules } from '../src/products.ts';
import { changePlan } from '../src/recruitment/change_plan.ts';
import { readExamples } from './example_requests.ts';
import { type Answer, type Caller, callerOf, eventually, type Json, sql, startRail, startReceiver } from './harness.ts';
import { fieldsOf, resourceNamedBy, resourceOf, resources, type Sample, send, World } from './samples.ts';

const rail = await startRail();
/** Every job that there was: to run it again. */
await rail.query(sql`create table public.every_job (task text, payload json)`);
await rail.query(sql`
  create function public.note_job() returns trigger language plpgsql security definer as $$
  begin
    insert into public.every_job select t.identifier, new.payload from graphile_worker._private_tasks t where t.id = new.task_id;
    return null;
  end
  $$`);
await rail.query(
  sql`create trigger note_job after insert or update of payload on graphile_worker._private_jobs for each row execute function public.note_job()`,
);
const receiver = await startReceiver();
const own = await worldOf(await rail.organization());
const other = await worldOf(await rail.organization());
const scopes = [...new Set(operations.map(({ scope }) => scope))];
const examples = await readExamples(rail);

/** POST requests that have succeeded, and their answers. */
const succeeded: {
  operation: Operation;
  caller: Caller;
  sample: Sample;
  headers: Record<string, string>;
  first: Answer;
}[] = [];

/** Those whose sample names something that the sample of another one names too. */
const apart = ['clicks.create', 'lists.update'];

for (const operation of operations) {
  t.test(operation.name, async (t) => {
    const plural = resourceOf(operation.path);
    if (operation.method === 'GET' && resources.includes(plural)) await own.fixture(plural);
    const sample = await own.sample(operation);
    await needsAKeyWithItsScope(t, operation, sample);
    if (operation.test_keys === false) await refusesTestKeys(t, operation, sample);
    if (operation.path.includes('{id}')) await hidesOtherOrganizations(t, operation, sample);
    await refusesWhatItDoesNotKnow(t, operation, sample);
    await succeedsAsItSays(t, operation, sample); // what is refused leaves it as it is
    if (operation.method === 'PATCH') await takesEachFieldByItself(t, operation);
    if (operation.stream && !operation.is_feed) await streams(t, operation);
    const { expand, include } = fieldsOf(operation.query).properties;
    if (expand) await expands(t, operation, (expand.items?.enum ?? []) as string[]);
    if (include) await includes(t, operation, (include.items?.enum ?? []) as string[]);
  });
}

async function worldOf(caller: Caller): Promise<World> {
  const { organization_id } = caller;
  // Its ledger has entries, and nothing is limited.
  await transaction(rail.store, { organization_id, request_id: null }, async (tx) => {
    await changePlan(tx, 'grow');
    await changePlan(tx, 'enterprise');
  });
  return new World(caller, receiver.url, await rail.key(caller.organization_id), rail);
}

type Test = Parameters<Parameters<typeof t.test>[0]>[0];

async function needsAKeyWithItsScope(t: Test, operation: Operation, sample: Sample): Promise<void> {
  const { scope } = operation;
  const refusedWith = async (t: Test, caller: Caller, status: number, code: string, param?: string) => {
    const answer = await send(caller, operation, sample);
    isRefused(t, answer, status, code, param);
  };
  await t.test('answers 401 missing_api_key without a key', (t) =>
    refusedWith(t, anonymous(), 401, 'missing_api_key', 'Authorization'),
  );
  await t.test('answers 403 insufficient_scope to a key that has every scope but its own', async (t) => {
    const without = await keyWith(scopes.filter((name) => name !== scope));
    await refusedWith(t, without, 403, 'insufficient_scope', scope);
  });
}

const neededBy = ({ scope, further_scopes = [] }: Operation): string[] => [scope, ...further_scopes];

/** Sends the request that /docs shows, unchanged. */
async function succeedsAsItSays(t: Test, operation: Operation, own_sample: Sample): Promise<void> {
  await t.test(
    'answers the sample of /docs with its status and strictly its schema, to a key of its scopes alone',
    async (t) => {
      const isApart = apart.includes(operation.name);
      const world = isApart ? await worldOf(await rail.organization()) : own;
      const sample = await examples.of(operation, world, isApart ? await world.sample(operation) : own_sample);
      const caller = await keyWith(neededBy(operation), 'live', world.caller.organization_id);
      const headers = operation.method === 'POST' ? { 'Idempotency-Key': `first of ${operation.name}` } : undefined;
      const first = await send(caller, operation, sample, headers);
      succeeds(t, operation, first);
      t.equal(first.headers['idempotent-replayed'], undefined);
      if (headers) succeeded.push({ operation, caller, sample, headers, first });
    },
  );
}

async function refusesTestKeys(t: Test, operation: Operation, sample: Sample): Promise<void> {
  await t.test('answers 403 test_key_not_allowed to a test key that has every scope', async (t) => {
    const answer = await send(await testKey(), operation, sample);
    isRefused(t, answer, 403, 'test_key_not_allowed', undefined, 'false');
  });
}

async function hidesOtherOrganizations(t: Test, operation: Operation, sample: Sample): Promise<void> {
  await t.test("answers 404 to the id of another organization's object", async (t) => {
    const path = await other.path(operation);
    isRefused(t, await send(own.caller, operation, { ...sample, path }), 404, 'resource_not_found', 'id');
  });
}

async function refusesWhatItDoesNotKnow(t: Test, operation: Operation, sample: Sample): Promise<void> {
  await t.test('answers 400 unknown_parameter to a query field that is not known', async (t) => {
    const answer = await send(own.caller, operation, { ...sample, query: { ...sample.query, misspelt: '1' } });
    isRefused(t, answer, 400, 'unknown_parameter', 'misspelt');
  });
  await refusesForeignReferences(t, operation, 'query', sample);
  // In a bulk each object is refused by itself, as the single operation refuses it.
  if (operation.method === 'GET' || operation.bulk_of) return;
  await t.test('answers 400 unknown_parameter to a body field that is not known', async (t) => {
    const answer = await send(own.caller, operation, { ...sample, body: { ...sample.body, misspelt: 1 } });
    isRefused(t, answer, 400, 'unknown_parameter', 'misspelt');
  });
  await refusesForeignReferences(t, operation, 'body', sample);
  for (const field of fieldsOf(operation.body).required) {
    await t.test(`answers 400 missing_parameter without ${field}`, async (t) => {
      const { [field]: _, ...body } = sample.body as Json;
      isRefused(t, await send(own.caller, operation, { ...sample, body }), 400, 'missing_parameter', field);
    });
  }
}

/** "Each with its own outcome": an id that is not known fails by itself, and the call does not. */
const with_outcomes = ['prospects.bulk: prospect_ids', 'campaigns.add_prospects: prospect_ids'];

/** In a body every reference must be the organization's own; in a query those that say whose objects are asked for. */
async function refusesForeignReferences(
  t: Test,
  operation: Operation,
  place: 'body' | 'query',
  { path }: Sample,
): Promise<void> {
  const { properties, required } = fieldsOf(operation[place]);
  for (const field of place === 'body' ? Object.keys(properties) : required) {
    const plural = resourceNamedBy(field);
    if (plural === undefined || with_outcomes.includes(`${operation.name}: ${field}`)) continue;
    await t.test(`answers 404 to another organization's ${field}`, async (t) => {
      const { id } = await other.fixture(plural);
      const foreign = field.endsWith('s') ? [id] : id;
      const sample = await own.sample(operation, { path, [place]: { [field]: foreign } });
      isRefused(t, await send(own.caller, operation, sample), 404, 'resource_not_found', field);
    });
  }
}

/** Fields that mean nothing without another one. */
const only_with: Json = { suspension_reason: { status: 'suspended' }, min_gap_s: { max_gap_s: 86_400 } };
/** Fields that a provider must agree to, which no test has; loopback ones do in the tests of their own. */
const agreed_by_others = ['inboxes.update: oauth'];
/** Fields that must be of the same site as the record; prospects have a test of it. */
const bound_to_record = ['prospects.update: url'];

async function takesEachFieldByItself(t: Test, operation: Operation): Promise<void> {
  for (const field of Object.keys(fieldsOf(operation.body).properties)) {
    if ([...agreed_by_others, ...bound_to_record].includes(`${operation.name}: ${field}`)) continue;
    await t.test(`changes ${field} by itself`, async (t) => {
      const value = await own.value(operation, operation.body, field);
      const sample = await own.sample(operation, { body: { ...only_with[field], [field]: value } });
      succeeds(t, operation, await send(own.caller, operation, sample));
    });
  }
}

t.test('replays the first answer of each to the same Idempotency-Key, and does nothing', async (t) => {
  await idle();
  const before = await countRows();
  const wrong: string[] = [];
  for (const { operation, caller, sample, headers, first } of succeeded) {
    const again = await send(caller, operation, sample, headers);
    const isReplay = again.headers['idempotent-replayed'] === 'true' && again.status === first.status;
    const isNew = again.headers['rail-request-id'] !== first.headers['rail-request-id'];
    if (!isReplay || !isNew || again.text !== first.text)
      wrong.push(`${operation.name}: ${again.status} ${again.text}`);
  }
  t.ok(succeeded.length > 50);
  t.same(wrong, []);
  await idle();
  t.same(await countRows(), before);
});

/** Tasks of which no operation here leaves a job: their own tests kill workers amid them, or run them twice. */
const without_job = [
  'core/mail_sign_in_links',
  'program/apply_bank_report',
  'program/change_payout',
  'program/create_monthly_batch',
  'program/delete_group',
  'program/delete_partner',
  'program/delete_payout_batch',
  'program/delete_tag',
  'program/emit_due_payouts',
  'program/erase_customer',
  'program/mail_magic_links',
  'program/mature_organization',
  'program/poll_payout',
  'program/purge_clicks_of_organization',
  'program/release_processor_events',
  'program/resolve_processor_event',
  'program/send_due_program',
  'program/submit_payouts',
  'recruitment/complete_sequences',
  'recruitment/erase_prospects',
  'recruitment/fail_sequences',
  'recruitment/observe_joining',
  'recruitment/purge_organization',
  'recruitment/read_mailbox',
  'recruitment/refresh_bars',
  'recruitment/start_campaign',
  'recruitment/start_weekly_scan',
  'recruitment/stop_campaigns',
  'recruitment/stop_sequences',
  'recruitment/unassign_member',
  'recruitment/unschedule_sequences',
  'recruitment/visit_prospect',
  'webhooks/deliver_slow',
  'webhooks/disable_failing_endpoint',
];

const eventTypes = () =>
  rail.query(sql`select e.type, count(*) as events from webhooks.event e group by e.type order by e.type`);

/** Only a replay of many deliveries sends them again: webhooks may come twice. */
t.test('a job that is run again after it is done does nothing twice', async (t) => {
  await idle();
  for (const { name } of schedules) await rail.tick(name, new Date().toISOString());
  await idle();
  // The sample of searches.cancel opens searches again that have ended: their jobs would go on with them.
  await rail.query(
    sql`update recruitment.run set state = 'cancelled', finished_at = now() where state in ('queued', 'running')`,
  );
  const jobs = await rail.query<{ identifier: string; payload: Json }>(
    sql`select distinct on (j.task, j.payload::text) j.task as identifier, j.payload from public.every_job j order by j.task, j.payload::text`,
  );
  t.same(
    Object.keys(await findTasks()).filter((name) => !jobs.some(({ identifier }) => identifier === name)),
    without_job,
    'take one that has a job here off the list',
  );
  const again = jobs.filter(({ identifier }) => identifier !== 'webhooks/replay_many');
  const before = await countRows();
  const types = await eventTypes();
  await rail.query(sql`select core.enqueue(${JSON.stringify(again)}::json)`);
  await idle();
  t.same(await eventTypes(), types);
  t.same(await countRows(), before);
  const failed = await rail.query(sql`select j.task, j.last_error from core.jobs() j where j.last_error is not null`);
  t.same(failed, []);
});

/** Every row of the JSON answer stands in the other formats too. */
async function streams(t: Test, operation: Operation): Promise<void> {
  const sample = await own.sample(operation);
  await idle(); // a job may change a row between two answers
  const get = (format: string, caller: Caller) =>
    send(caller, operation, { ...sample, query: { ...sample.query, format } });
  for (const [format, type] of Object.entries(media_types)) {
    await t.test(`answers its rows as ${format} to a key that has its scope`, async (t) => {
      const caller = await keyWith(neededBy(operation)); // its user is a member of the team
      const { data = [] } = (await send(own.caller, operation, sample)).body;
      if (operation.name.endsWith('.list')) t.not(data.length, 0);
      const answer = await get(format, caller);
      const { text } = answer;
      t.equal(answer.status, 200, text);
      hasStandardHeaders(t, answer, type);
      const lines = text.trimEnd().split('\n');
      if (format === 'ndjson')
        t.strictSame(
          lines.slice(0, data.length).map((line) => JSON.parse(line)),
          data,
        );
      for (const { id } of data) t.ok(text.includes(id), `${format} has ${id}`);
      t.equal((await get(format, await keyWith(['events:write']))).status, 403);
    });
  }
}

async function expands(t: Test, operation: Operation, allowed: string[]): Promise<void> {
  const sample = await own.sample(operation);
  const ask = (query: Record<string, string>) =>
    send(own.caller, operation, { ...sample, query: { ...sample.query, ...query } });
  await t.test('answers 400 invalid_expand to an unknown relation, and names those that it has', async (t) => {
    for (const spelling of ['expand', 'expand[]']) {
      const answer = await ask({ [spelling]: 'misspelt' });
      isRefused(t, answer, 400, 'invalid_expand', 'expand');
      for (const name of allowed) t.match(answer.body.error.message, name);
    }
  });
  if (allowed.length === 0) return;
  await t.test(`inlines ${allowed.join(', ')}, in both spellings`, async (t) => {
    for (const query of [...allowed.map((name) => ({ 'expand[]': name })), { expand: allowed.join(',') }]) {
      const answer = await ask(query);
      succeeds(t, operation, answer);
      t.not(rowsIn(answer).length, 0);
      for (const row of rowsIn(answer)) {
        for (const name of allowed) {
          const asked = Object.values(query).join().split(',').includes(name);
          t.equal(name in row, asked, `${name} is there when it is asked for`);
          if (asked) t.equal(row[name]?.id ?? null, row[`${name}_id`], `${name} is what ${name}_id says`);
        }
      }
    }
    const spelt = [...Object.entries(sample.query), ...allowed.map((name) => ['expand[]', name])];
    const path = `${sample.path}?${new URLSearchParams(spelt as [string, string][])}`;
    const all = await own.caller.request(operation.method, path);
    t.same(all.body, (await ask({ expand: allowed.join(',') })).body, 'both spellings say the same');
  });
  await t.test('needs the read scope of what it inlines', async (t) => {
    const blind = await keyWith(neededBy(operation));
    for (const name of allowed) {
      const scope = scopeOf(name);
      const answer = await send(blind, operation, { ...sample, query: { ...sample.query, expand: name } });
      if (scope === operation.scope) succeeds(t, operation, answer);
      else isRefused(t, answer, 403, 'insufficient_scope', scope);
    }
  });
}

/** The read scope of what a relation is. A team member is called after what they do: `assignee_member`. */
function scopeOf(relation: string): string {
  const plural = relation.endsWith('_member') ? 'team' : resourceNamedBy(`${relation}_id`);
  const read = operations.find(
    ({ method, path }) => method === 'GET' && path.endsWith('/{id}') && resourceOf(path) === plural,
  );
  return read?.scope ?? `${plural}:read`;
}

async function includes(t: Test, operation: Operation, allowed: string[]): Promise<void> {
  const sample = await own.sample(operation);
  const ask = (value: string) =>
    send(own.caller, operation, { ...sample, query: { ...sample.query, 'include[]': value } });
  await t.test('answers 400 invalid_include to what cannot be included', async (t) => {
    isRefused(t, await ask('misspelt'), 400, 'invalid_include', 'include');
    if (!allowed.includes('stats')) isRefused(t, await ask('stats'), 400, 'invalid_include', 'include');
  });
  for (const name of allowed) {
    await t.test(`includes ${name} when asked`, async (t) => {
      const answer = await ask(name);
      succeeds(t, operation, answer);
      const rows = rowsIn(answer);
      t.not(rows.length, 0);
      for (const row of rows) t.ok(name in row, `${row.id} has ${name}`);
      for (const row of rowsIn(await send(own.caller, operation, sample))) t.notOk(name in row);
    });
  }
}

const rowsIn = ({ body }: Answer): Json[] => (Array.isArray(body.data) ? body.data : [body]);

/** The status it says, the headers of every response, and no key beyond its schema's. */
function succeeds(t: Test, { status, reply, is_feed, file }: Operation, answer: Answer): void {
  t.equal(answer.status, status, answer.text.slice(0, 300));
  const succeeded = answer.status < 300;
  if (succeeded && file?.only) {
    hasStandardHeaders(t, answer, answer.headers['content-type']?.split(';')[0]);
    t.ok(Object.values(file.media_types).some((type) => answer.headers['content-type']?.startsWith(type)));
    return void t.not(answer.text, '');
  }
  hasStandardHeaders(t, answer, succeeded && is_feed ? media_types.ndjson : undefined);
  if (!succeeded) return;
  for (const body of is_feed ? answer.body.data : [answer.body]) {
    const parsed = reply.parse(body);
    // An equal reply, which is the rule, costs no diff.
    if (!isDeepStrictEqual(parsed, body)) t.strictSame(parsed, body, 'has no key beyond its schema');
  }
}

/** The catalogue's type and status, and the envelope of every error. */
function isRefused(t: Test, answer: Answer, status: number, code: string, param?: string, livemode = 'true'): void {
  hasStandardHeaders(t, answer, undefined, livemode);
  const message = answer.body.error?.message;
  const error = { type: problems[code as ProblemCode].type, code, message, ...(param === undefined ? {} : { param }) };
  t.strictSame({ status: answer.status, body: answer.body }, { status, body: { error } }, answer.text.slice(0, 300));
  t.match(message, /^.{10,}\.$/);
}

function hasStandardHeaders(
  t: Test,
  { headers }: Pick<Answer, 'headers'>,
  type = 'application/json',
  livemode = 'true',
): void {
  // One assert instead of seven: there are thousands of answers, and each assert looks up where it stands.
  t.match(headers, {
    'x-rail-version': new RegExp(`^${RegExp.escape(api_version)}$`),
    'x-rail-livemode': new RegExp(`^${livemode}$`),
    'rail-request-id': /^req_[0-9a-z]{26}$/,
    'content-type': new RegExp(`^${RegExp.escape(type)}`),
    'x-ratelimit-limit': /^\d+$/,
    'x-ratelimit-remaining': /^\d+$/,
    'x-ratelimit-reset': /^\d+$/,
  });
}

const keys = new Map<string, Promise<Caller>>();

/** The same key each time that the same scopes are asked for. */
function keyWith(
  some: string[],
  mode: 'live' | 'test' = 'live',
  organization_id = own.caller.organization_id,
): Promise<Caller> {
  const name = `${organization_id} ${mode} ${some.join()}`;
  const known = keys.get(name) ?? rail.key(organization_id, { scopes: some, mode });
  keys.set(name, known);
  return known;
}
const testKey = (): Promise<Caller> => keyWith(['*'], 'test');
const nobody = (): Caller => callerOf(baseUrl(), '', '');
const anonymous = (): Caller => ({
  ...nobody(),
  request: (method, path, body, headers) => nobody().request(method, path, body, { ...headers, Authorization: '' }),
});

function baseUrl(): string {
  const address = rail.app.server.address() as { port: number };
  return `http://127.0.0.1:${address.port}`;
}

/** Waits until nothing follows any more from what was done. */
async function idle(): Promise<void> {
  await eventually(async () => {
    const [row] = await rail.query<{ busy: boolean }>(sql`
      select exists (select from graphile_worker.jobs where attempts < max_attempts and run_at <= now())
        or exists (select from webhooks.pending_event)
        or exists (select from webhooks.queued_delivery) as busy`);
    return row?.busy === false;
  }, 'the worker to have nothing to do');
}

/** Counts the rows of each table, but for those that a job folds at any minute, and the place of a worker in the mail of inboxes. */
async function countRows(): Promise<Json> {
  const tables = await rail.query<{ name: string }>(sql`
    select distinct format('%I.%I', c.table_schema, c.table_name) as name
    from information_schema.columns c
    where c.column_name = 'organization_id' and c.table_schema in ('core', 'webhooks', 'program', 'recruitment')
      and c.table_name not in ('tally', 'tally_note', 'counted', 'report_note', 'report_total', 'report_slice', 'report_key',
        'inbox_reader', 'inbox_folder')
      and not (select r.relispartition from pg_class r where r.oid = format('%I.%I', c.table_schema, c.table_name)::regclass)`);
  const counts = tables.map(({ name }) => `select '${name}' as name, count(*) as rows from ${name}`);
  const rows = await rail.query<{ name: string; rows: number }>(sql`${raw(counts.join(' union all '))}`);
  return Object.fromEntries(rows.map(({ name, rows }) => [name, rows]));
}
