import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { command } from '../command_process.ts';
import { type Answer, callerOf, eventually } from '../harness.ts';
import { makeDataDir, rail, spawnRail } from '../rail_process.ts';
import { isAlive, postgresOf } from '../runner/run_directory.ts';

const dataDir = await makeDataDir(t, 'migrated');
const service = spawnRail(t, ['start'], { RAIL_DATA_DIR: dataDir, PORT: '0' });
await service.until(/Rail is running on \S+[\s\S]*Ctrl-C stops it/);
const demo = JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'));
const caller = callerOf(demo.base_url, demo.api_key, demo.organization_id);
let partners = 0;
/** Another one each time: of one that was answered 503, nobody knows whether it was created. */
const addPartner = () =>
  caller.request('POST', '/v1/partners', {
    program_id: demo.program_id,
    email: `partner-${++partners}@partner.example.com`,
  });

async function killPostgres(): Promise<number> {
  const pid = (await postgresOf(dataDir)) as number;
  process.kill(pid, 'SIGKILL');
  await eventually(() => !isAlive(pid), 'Postgres to be gone');
  return pid;
}

/** Every answer until one succeeds. */
async function answersUntilCreated(): Promise<Answer[]> {
  const answers: Answer[] = [];
  await eventually(async () => {
    const answer = await addPartner();
    answers.push(answer);
    return answer.status === 201;
  }, 'a partner to be created');
  return answers;
}

t.test('a Postgres that is killed is started again: requests answer 503 meanwhile, and jobs go on', async (t) => {
  for (let nth = 1; nth <= 2; nth++) {
    const pid = await killPostgres();
    const answers = await answersUntilCreated();
    t.equal(answers.at(-1)?.status, 201);
    for (const { status, headers } of answers.slice(0, -1)) {
      t.equal(status, 503);
      t.match(headers, { 'retry-after': /^\d+$/ });
    }
    await service.until(new RegExp(`"level":40[^\\n]+Postgres \\(pid ${pid}\\) has ended; starting it again`));
    await service.until(/Postgres is running again \(pid \d+\)/);
  }
  const job = await command(['run', 'program/mature_commissions', '--wait'], { RAIL_DATA_DIR: dataDir });
  t.equal(job.code, 0, job.stderr);
});

t.test('a command that finds it dead starts it where the service looks for it', async (t) => {
  await killPostgres();
  const list = await rail(t, ['org', 'list'], { RAIL_DATA_DIR: dataDir });
  t.equal(list.code, 0, list.stderr);
  t.equal((await answersUntilCreated()).at(-1)?.status, 201);
});

t.test('as long as it cannot be started, the log says why and when it is tried again', async (t) => {
  const [pid, , , port] = (await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8')).split('\n').map(Number);
  service.signal('SIGSTOP');
  process.kill(pid as number, 'SIGKILL');
  const taken = createServer((socket) => socket.destroy());
  const listens = () =>
    new Promise<boolean>((resolve) => {
      taken.once('error', () => resolve(false));
      taken.listen(port, '127.0.0.1', () => resolve(true));
    });
  await eventually(listens, 'the port of Postgres to be free');
  service.signal('SIGCONT');
  await service.until(/Postgres did not start\.[^\n]+Trying again in \d+ s\./);
  t.equal((await addPartner()).status, 503);
  taken.close();
  await once(taken, 'close');
  t.equal((await answersUntilCreated()).at(-1)?.status, 201);
});

t.test('what stops is not started again', async (t) => {
  t.equal((await service.stop('SIGTERM')).code, 0);
  t.equal(await postgresOf(dataDir), undefined);
});
