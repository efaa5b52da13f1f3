import t from 'tap';
import { z } from 'zod';
import { scheduled } from '../../../src/core/jobs/schedule.ts';
import { batchTask, task } from '../../../src/core/jobs/task.ts';
import { partsByClass, type TaskContext } from '../../../src/core/jobs/worker_context.ts';
import type { Tx } from '../../../src/core/postgres/transaction.ts';
import { log, services, sql, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });
const { organization_id } = await rail.organization();
const never = new AbortController().signal;
const context: TaskContext = {
  ...{ store: rail.store, services, log, worker_id: 'worker_test', stopping: never, cut_off: never },
  use: partsByClass([]),
};

const whoRuns = async (tx: Tx) => ({
  organization_id: tx.organization_id,
  request_id: tx.request_id,
  ...(await tx.one(sql`select current_user::text as role, pg_current_xact_id()::text as transaction`)),
});

t.test('a task is one transaction, opened by what its payload says', async (t) => {
  const tenant = z.object({ organization_id: z.string(), request_id: z.string().nullable() });
  const run_of_tenant = scheduled.extend({ organization_id: z.string() });
  const tick = '2026-03-01T12:00:00.000Z';
  const cases: [payload: z.ZodType, given: object, expected: object][] = [
    [tenant, { organization_id, request_id: 'req_1' }, { organization_id, request_id: 'req_1', role: 'rail_api' }],
    [tenant, { organization_id, request_id: null }, { organization_id, request_id: null, role: 'rail_api' }],
    [run_of_tenant, { organization_id, run_id: 'run_1', tick }, { request_id: 'run_1', role: 'rail_api' }],
    [scheduled, { run_id: 'run_1', tick }, { organization_id: '', request_id: 'run_1', role: /^(?!rail_api)/ }],
  ];
  for (const [payload, given, expected] of cases) {
    let seen: object = {};
    const one = task({
      payload: payload as typeof tenant,
      async run({ tx }) {
        seen = await whoRuns(tx);
      },
    });
    await one.run(payload.parse(given), context);
    t.match(seen, expected, JSON.stringify(given));
  }
});

t.test('a payload that says neither has its opening declared', async (t) => {
  const payload = z.object({ endpoint_id: z.string() });
  let seen: object = {};
  const declared = task({
    payload,
    opening: { organization_id, request_id: 'req_2' },
    async run({ tx }) {
      seen = await whoRuns(tx);
    },
  });
  await declared.run({ endpoint_id: 'we_1' }, context);
  t.match(seen, { organization_id, request_id: 'req_2', role: 'rail_api' });
  // @ts-expect-error: without one it would work across all tenants unnoticed
  task({ payload, run: async () => {} });
});

t.test('a batch task has a transaction a batch, until one is not full', async (t) => {
  const batches = [3, 3, 2, 3];
  const seen: string[] = [];
  const many = batchTask({
    payload: scheduled,
    most: 3,
    async run({ tx }) {
      seen.push((await tx.one<{ id: string }>(sql`select pg_current_xact_id()::text as id`)).id);
      return batches.shift() as number;
    },
  });
  await many.run({ run_id: 'run_1', tick: '2026-03-01T12:00:00.000Z' }, context);
  t.equal(new Set(seen).size, 3);
  t.same(batches, [3]);
});

t.test('a task gets a part of its worker by its class, or an error that names it', (t) => {
  class Clock {
    readonly hour = 12;
  }
  class Calendar {}
  const use = partsByClass([new Clock()]);
  t.equal(use(Clock).hour, 12);
  t.throws(() => use(Calendar), { message: 'No extension of the worker contributes a Calendar.' });
  t.end();
});
