import { pino } from 'pino';
import t from 'tap';
import { withoutSecrets } from '../../src/commands/jobs/show.ts';
import { jobBacklog } from '../../src/core/jobs/backlog.ts';
import { command } from '../command_process.ts';
import { encryption_key, eventually, type Json, sql, startRail, startReceiver, startWorker } from '../harness.ts';

const rail = await startRail({ worker: false });
const environment = { DATABASE_URL: rail.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };
const run = (...args: string[]) => command(args, environment);
const answerOf = async (...args: string[]): Promise<Json> => {
  const { code, stdout, stderr } = await run(...args, '--json');
  if (code !== 0) throw new Error(`rail ${args.join(' ')} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout);
};

/** A job of a task, of which nothing runs yet. */
async function enqueue(identifier: string, payload: Json, set = sql`run_at = now()`): Promise<number> {
  await rail.query(sql`select core.enqueue(${JSON.stringify([{ identifier, payload }])}::json)`);
  const [job] = await rail.query<{ id: number }>(
    sql`update graphile_worker._private_jobs set ${set} where id = (select max(id) from graphile_worker._private_jobs) returning id`,
  );
  return job?.id as number;
}

const failed = sql`attempts = max_attempts, last_error = 'connect ECONNREFUSED', updated_at = now() - interval '1 hour'`;
const retrying = sql`attempts = 6, last_error = 'connect ECONNREFUSED', run_at = now() + interval '1 hour'`;
const running = sql`attempts = 1, locked_at = now() - interval '5 hours', locked_by = 'somebody'`;
const stateOf = async (id: number) =>
  (await rail.query<Json>(sql`select j.state, j.attempts, j.last_error from core.jobs() j where j.id = ${id}`))[0];

t.test('says that there are no jobs', async (t) => {
  await rail.query(sql`delete from graphile_worker._private_jobs`);
  t.match(await run('jobs', 'list'), { code: 0, stdout: 'There are no jobs.\n' });
  t.match(await run('jobs', 'list', '--state', 'failed'), { code: 0, stdout: 'There is no such job.\n' });
});

t.test('lists jobs by task, state, error, age, organization and object, and counts them', async (t) => {
  const { organization_id } = await rail.organization();
  const ids = {
    failed: await enqueue('core/send_mail', { organization_id, id: 'mail_1' }, failed),
    retrying: await enqueue('core/send_mail', { organization_id, id: 'mail_2' }, retrying),
    running: await enqueue('program/assess_risk', { organization_id, id: 'sale_1' }, running),
    later: await enqueue('program/assess_risk', { id: 'sale_2' }, sql`run_at = now() + interval '1 day'`),
    ready: await enqueue('program/assess_risk', { id: 'sale_3' }),
  };
  const listed = async (...args: string[]) => ((await answerOf('jobs', 'list', ...args)) as Json[]).map(({ id }) => id);
  t.same(await listed(), [ids.running, ids.failed, ids.ready, ids.retrying, ids.later]);
  for (const [state, id] of Object.entries(ids)) t.same(await listed('--state', state), [id]);
  t.same(await listed('--task', 'core/send_mail'), [ids.failed, ids.retrying]);
  t.same(await listed('--error', 'econnrefused'), [ids.failed, ids.retrying]);
  t.same(await listed('--older-than', '30m'), [ids.running, ids.failed]);
  t.same(await listed('--organization', organization_id), [ids.running, ids.failed, ids.retrying]);
  t.same(await listed('--object', 'sale_2'), [ids.later]);
  const text = (await run('jobs', 'list', '--limit', '2')).stdout;
  t.match(text, /^JOB +TASK +STATE +AGE +ATTEMPTS +ABOUT\n[\s\S]*LAST ERROR[\s\S]*5 jobs match; the 2 /);
  for (const line of text.split('\n')) t.ok(line.length <= 100, line);
  t.match((await run('jobs', 'stats')).stdout, /\ncore\/send_mail +1 +1 *\n?/);
  t.match((await run('jobs', 'list', '--limit', '1')).stdout, /5 jobs match; the one that was there first is shown/);
  await run('jobs', 'cancel', String(ids.later));
  const counted = (await answerOf('jobs', 'stats')) as Json[];
  t.same(counted.map(({ state }) => state).sort(), ['cancelled', 'failed', 'ready', 'retrying', 'running']);
  const backlog = jobBacklog([]);
  const gauges = await backlog.read(rail.store.database);
  const measured = gauges.filter(({ gauge, value }) => gauge === backlog.gauges[0] && value > 0);
  t.same(
    measured.map(({ labels, value }) => `${labels.task} ${labels.state} ${value}`).sort(),
    counted.map(({ task, state, jobs }) => `${task} ${state} ${jobs}`).sort(),
    'metrics count the same: a job that was cancelled has not failed',
  );
  t.match(await run('jobs', 'list', '--task', 'program/mature_comissions'), {
    ...{
      code: 2,
      stderr: /There is no task 'program\/mature_comissions'\. Did you mean program\/mature_commissions\?/,
    },
  });
  t.match(await run('jobs', 'list', '--organization', 'org_unknown'), { code: 1, stderr: /There is no organization/ });
  const gone = await enqueue('core/no_such_task', {});
  t.same(await listed('--task', 'core/no_such_task'), [gone], 'a task of another version');
  t.match(await run('jobs', 'list', '--older-than', 'soon'), { code: 2, stderr: /must be a duration/ });
  t.match(await run('jobs', 'show', String(ids.failed)), {
    stdout: new RegExp(
      `State +failed, for 60 min\\nAbout +mail_1\\nOrganization +${organization_id} \\(Test\\)[\\s\\S]*ECONNREFUSED`,
    ),
  });
  t.match(await run('jobs', 'show', '1000000'), { code: 1, stderr: /There is no job 1000000/ });
  await rail.query(sql`delete from graphile_worker._private_jobs`);
});

t.test('a payload is shown without texts and secrets', (t) => {
  const payload = {
    id: 'sale_1',
    text: 'Dear Ada',
    secret: 'whsec_1',
    at: '2026-01-01T00:00:00.000Z',
    by: { email: 'a@b.example' },
    n: [1],
  };
  t.same(withoutSecrets(payload), {
    ...{
      id: 'sale_1',
      text: '(8 characters)',
      secret: '(hidden)',
      at: '2026-01-01T00:00:00.000Z',
      by: { email: '(hidden)' },
      n: [1],
    },
  });
  t.end();
});

t.test('retries and cancels by number, and refuses what a worker runs', async (t) => {
  const bad = await enqueue('core/send_mail', { id: 'mail_1' }, failed);
  const slow = await enqueue('core/send_mail', { id: 'mail_2' }, retrying);
  const busy = await enqueue('core/send_mail', { id: 'mail_3' }, running);
  const fine = await enqueue('core/send_mail', { id: 'mail_4' }, sql`run_at = now() + interval '1 day'`);
  const preview = await answerOf('jobs', 'retry', String(bad), '--dry-run');
  t.match(preview, { done: false, jobs: [{ id: bad }] });
  t.match(await stateOf(bad), { state: 'failed' });
  const outcome = await run('jobs', 'retry', ...[bad, slow, busy, fine].map(String));
  t.match(outcome, {
    code: 1,
    stdout: /2 jobs run at once[\s\S]*A worker runs it\.[\s\S]*It has not failed: it runs at/,
  });
  t.match(outcome.stderr, /No worker runs/);
  t.match(
    [await stateOf(bad), await stateOf(slow)],
    [
      { state: 'ready', attempts: 0 },
      { state: 'ready', attempts: 0 },
    ],
  );
  t.match(await stateOf(busy), { state: 'running', attempts: 1 });
  t.match(await run('jobs', 'cancel', String(busy)), { code: 1, stdout: /^No job is cancelled\.\n/ });
  t.match(await run('jobs', 'cancel', String(bad), String(fine)), { code: 0, stdout: /2 jobs are cancelled/ });
  t.match(await stateOf(bad), {
    state: 'cancelled',
    last_error: 'Cancelled by an operator. Before: connect ECONNREFUSED',
  });
  t.match(await run('jobs', 'retry', String(fine)), { stdout: /^1 job runs at once, with all its attempts\.\n$/ });
  t.match(await run('jobs', 'cancel', String(fine)), {
    stdout: /^1 job is cancelled: it does not run, unless .* runs it\.\n$/,
  });
  t.match(await answerOf('jobs', 'retry', String(fine)), { done: true, jobs: [{ id: fine }] });
  t.match(await stateOf(fine), { state: 'ready' });
  t.match(await run('jobs', 'retry', '999999'), { code: 1, stderr: /There is no job 999999/ });
  await rail.query(sql`delete from graphile_worker._private_jobs`);
});

t.test('changes many jobs only when it is told how many they are', async (t) => {
  const ids = [];
  for (const nth of [1, 2, 3]) ids.push(await enqueue('core/send_mail', { id: `mail_${nth}` }, failed));
  const by = ['--task', 'core/send_mail', '--state', 'failed'];
  t.match(await run('jobs', 'retry', ...by), {
    code: 0,
    stdout: /3 jobs would run at once\.\nRepeat it with --confirm 3/,
  });
  t.match(await run('jobs', 'retry', ...by, '--confirm', '2'), {
    code: 1,
    stderr: /3 jobs match, and --confirm says 2: nothing/,
  });
  t.match(await stateOf(ids[0] as number), { state: 'failed' });
  t.match(await answerOf('jobs', 'retry', ...by, '--confirm', '3'), { done: true, jobs: { length: 3 } });
  t.match(await stateOf(ids[0] as number), { state: 'ready' });
  for (const [object, said] of [
    ['mail_1', '1 job matches'],
    ['mail_9', 'No job matches'],
  ] as const)
    t.match(await run('jobs', 'cancel', '--object', object, '--confirm', '5'), {
      code: 1,
      stderr: `rail: ${said}, and`,
    });
  t.match(await run('jobs', 'retry', '--object', 'mail_9'), { stdout: /^No job would run at once\.\n$/ });
  t.match(await run('jobs', 'cancel'), { code: 2, stderr: /Say which jobs/ });
  t.match(await run('jobs', 'cancel', '1', ...by), { code: 2, stderr: /Give either ids/ });
  await rail.query(sql`delete from graphile_worker._private_jobs`);
});

t.test('a job that fails is told of without its payload, and once when it is given up', async (t) => {
  const { organization_id } = await rail.organization();
  const lines: Json[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const payload = { organization_id, subject: 'A secret', text: 1 };
  const poisoned = await enqueue('program/mail_owner', payload, sql`attempts = 24`);
  const failing = await enqueue('program/mail_owner', payload, sql`attempts = 4`);
  const once = await enqueue('program/mail_owner', payload);
  const worker = startWorker({ url: rail.url, store: rail.store, services: rail.services, concurrency: 2, log });
  const about = (id: number) => lines.filter(({ job_id }) => job_id === String(id));
  await eventually(() => [poisoned, failing, once].every((id) => about(id).length > 0), 'the log of all');
  await eventually(async () => (await stateOf(poisoned))?.state === 'failed', 'the job to be given up');
  await worker.stop();
  t.match(about(poisoned), [
    { level: 50, organization_id, task: 'program/mail_owner', msg: /given up: 'npx --no rail jobs show \d+'/ },
  ]);
  t.match(about(failing), [{ level: 50, msg: /keeps failing/ }]);
  t.match(about(once), [{ level: 40, attempts: 1 }]);
  const { stdout } = await run('jobs', 'list', '--task', 'program/mail_owner');
  t.match(stdout, /Wrong payload: id: Invalid input: expected string/, 'the list says what is wrong');
  t.notMatch(JSON.stringify(lines), /A secret/);
  t.match((await run('runs')).stdout, /^SCHEDULE/);
  t.match(await run('runs', 'bogus'), { code: 2, stderr: /^rail: 'list' takes no arguments\. Unknown: bogus\./ });
  await rail.query(sql`delete from graphile_worker._private_jobs`);
});

t.test('shows the runs of schedules, what is left of them and why it fails', async (t) => {
  const tick = '2026-11-01T00:00:00.000Z';
  const id = (await rail.tick('program/mature_commissions', tick)) as string;
  t.match(await answerOf('runs', 'show', id), { id, tick, state: 'waiting', jobs_left: 1, jobs: [{ run_id: id }] });
  await rail.query(sql`update graphile_worker._private_jobs set attempts = max_attempts, last_error = 'out of memory'`);
  const all = (await answerOf('runs')) as Json[];
  t.match(all.find(({ schedule }) => schedule === 'program/mature_commissions')?.latest, { id, state: 'failed' });
  t.match((await run('runs')).stdout, /out of memory/);
  await run('jobs', 'cancel', '--state', 'failed', '--confirm', '1');
  t.match(await answerOf('runs', 'show', id), { state: 'cancelled', jobs_left: 0, last_error: null });
  await rail.query(sql`delete from graphile_worker._private_jobs`);
  t.match(await answerOf('runs', 'list', '--schedule', 'program/mature_commissions'), [
    { id, state: 'done', jobs_left: 0 },
  ]);
  t.match(await run('runs', 'list', '--schedule', 'mature_commissions'), {
    code: 2,
    stderr: /Did you mean program\/mature_commissions/,
  });
  t.match(await run('runs', 'show', 'run_unknown'), { code: 1, stderr: /There is no run/ });
});

t.test('lists, shows and replays deliveries of webhooks', async (t) => {
  const worker = startWorker({
    url: rail.url,
    store: rail.store,
    services: rail.services,
    concurrency: 2,
    log: pino({ level: 'silent' }),
  });
  t.teardown(() => worker.stop());
  const caller = await rail.organization();
  let status = 500;
  const receiver = await startReceiver(() => status);
  const { id: program_id } = await caller.post('/v1/programs', {
    name: 'Acme',
    currency: 'USD',
    website_url: 'https://acme.example.com',
  });
  const endpoint = await caller.post('/v1/webhook_endpoints', { program_id, url: receiver.url });
  await caller.post('/v1/partners', { program_id, email: 'ada@example.com' });
  const list = async (...args: string[]) =>
    (await answerOf('deliveries', 'list', '--endpoint', endpoint.id, ...args)) as Json[];
  await eventually(async () => (await list())[0]?.status_code === 500, 'the first attempt');
  const [first] = (await list('--status', 'pending')) as [Json];
  t.match(first, { attempt: 1, organization_id: caller.organization_id });
  t.match(await list('--type', first.event_type), [{ id: first.id }]);
  t.same(await list('--status', 'delivered'), []);
  for (const [option, name, meant] of [
    ['--type', 'afiliate.created', 2],
    ['--endpoint', 'whe_unknown', 1],
    ['--organization', 'org_unknown', 1],
  ] as const)
    t.match(await run('deliveries', 'list', option, name), { code: meant, stdout: '', stderr: `There is no` }, option);
  const dueAt = (at: string) =>
    rail.query(sql`update webhooks.delivery set next_attempt_at = ${at} where id = ${first.id}`);
  const { next_attempt_at } = await answerOf('deliveries', 'show', first.id);
  await dueAt('2026-01-01T00:00:00.000Z');
  t.match((await run('deliveries', 'show', first.id)).stdout, 'Next attempt  due since 2026-01-01T00:00:00.000Z\n');
  await dueAt(next_attempt_at);
  t.match((await run('deliveries', 'show', first.id)).stdout, `Next attempt  ${next_attempt_at}\n`);
  t.match((await run('deliveries', 'show', first.id)).stdout, /ATTEMPT +AT +TOOK +ANSWER[\s\S]*500/);
  status = 200;
  const replayed = await answerOf('deliveries', 'replay', first.id);
  t.equal(replayed.replay_of, first.id);
  await eventually(
    async () => (await list('--status', 'delivered')).some(({ id }) => id === replayed.id),
    'the replay',
  );
  const since = new Date(Date.now() - 60_000).toISOString();
  const replay = ['deliveries', 'replay', '--endpoint', endpoint.id];
  const none = { code: 0, stdout: /^No delivery of whe_\w+ matches: none is sent again\./ };
  t.match(await run(...replay, '--failed-since', since), none, 'those that are pending have not failed');
  const ago = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
  t.match(await run(...replay, '--from', ago(2), '--to', ago(1)), none, 'a window before them');
  const events = new Set((await list()).map(({ event_id }) => event_id));
  t.equal((await answerOf(...replay, '--from', since, '--to', ago(0))).deliveries, events.size);
  await rail.query(sql`update webhooks.delivery set status = 'failed', next_attempt_at = null where id = ${first.id}`);
  t.match(await run(...replay, '--failed-since', since), {
    ...{ code: 0, stdout: /^1 delivery of whe_\w+ matches: a worker queues it again\./ },
  });
  for (const [given, said] of [
    [[], /^rail: Give --failed-since, or --from and --to\.\n$/],
    [['--from', since], /^rail: --to is required with --from\.\n$/],
    [['--failed-since', ago(-1)], /^rail: --failed-since must be in the past\.\n$/],
  ] as const)
    t.match(await run(...replay, ...given), { code: 2, stdout: '', stderr: said });
  t.match(await run('deliveries', 'replay'), { code: 2, stderr: /Give either/ });
  t.match(await run('deliveries', 'replay', 'whd_unknown'), { code: 1, stderr: /There is no delivery/ });
  await eventually(async () => (await rail.query(sql`select from core.jobs()`)).length === 0, 'nothing left to do');
});
