import t from 'tap';
import { eventually, type Json, sql, startRail } from '../harness.ts';
import { type Process, spawnProcess, startGate, startProcess } from '../processes.ts';

const rail = await startRail({ worker: false, durability: 'durable' });
const gate = await startGate(rail.url);
let worker: Process = await startProcess('worker', gate.url);
/** @param isDead called before the next worker starts. That one works before it is ready, so that it may be killed before that. */
const replace = async (isDead = () => {}) => {
  await worker.end('SIGKILL');
  gate.cut();
  isDead();
  const next = spawnProcess('worker', gate.url);
  worker = next;
  await next.ready;
};

/** More than a step of 2,000. */
const rows = 2_300;
const base = '/recruitment/v1';

t.test('an import whose worker is killed goes on, and makes nobody twice', async (t) => {
  const caller = await rail.organization();
  const { id: brand_id } = await caller.post(`${base}/brands`, { name: 'A', website_url: 'https://acme.example.com' });
  /** The end of the second step, and then that of the import. */
  let died = 0;
  let replaced: Promise<unknown> = Promise.resolve();
  const arm = (side: 'before' | 'after', text: string, nth: number, next?: () => void) => {
    let seen = 0;
    const stopped = gate.stopAt(
      side,
      (statement, answer) =>
        answer === undefined && statement.text.replaceAll(/\s+/g, ' ').includes(text) && ++seen === nth,
    );
    void stopped.then(() => {
      died++;
      replaced = Promise.all([replaced, replace(next)]);
    });
  };
  arm('before', 'set rows_read = t.rows_read +', 2, () => arm('after', 'delete from recruitment.import_chunk', 1));
  const lines = Array.from({ length: rows }, (_, nth) =>
    nth === 700 ? '-,' : `kill${nth}.com,a${nth}@kill${nth}.com`,
  );
  const document = `key,email\n${lines.join('\n')}\n`;
  const { id } = await caller.post(`${base}/prospects/import`, { brand_id, document });
  let done: Json = {};
  const isDone = async () => {
    done = await caller.get(`${base}/imports/${id}`);
    return done.finished_at !== null;
  };
  await eventually(isDone, 'the import to end', 150_000);
  gate.disarm();
  await replaced;
  t.equal(died, 2, 'workers died');
  t.match(done, { state: 'done', total: rows, created: rows - 1, updated: 0, unchanged: 0, refused: 1 });
  t.match(done.errors, [{ line: 702, field: 'key' }]);
  const [counted] = await rail.query(sql`
    select (select count(*) from recruitment.prospect where brand_id = ${brand_id}) as prospects,
      (select count(*) from recruitment.email_address where organization_id = ${caller.organization_id}) as addresses,
      (select count(*) from webhooks.event where organization_id = ${caller.organization_id} and type = 'affiliate.added') as events,
      (select count(*) from recruitment.import_error where import_id = ${id}) as errors,
      (select count(*) from recruitment.import_chunk where import_id = ${id}) as chunks`);
  t.same(counted, { prospects: rows - 1, addresses: rows - 1, events: rows - 1, errors: 1, chunks: 0 });
});
