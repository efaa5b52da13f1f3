/** `npm run soak -- NAME`: what tests do in seconds, for as long as it takes. */
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

interface Asked {
  files: string[];
  seconds: number;
  seed: number;
  /** As the soak has it, where it is left out. */
  kills?: number | undefined;
  sends: number;
}

const soaks: Record<string, { doc: string; run: (asked: Asked) => Promise<unknown> }> = {
  worker: {
    doc: 'kills the worker before and after every statement of the slice; some minutes',
    run: () => import('./crash/soak.ts'),
  },
  payouts: {
    doc: 'kills the worker 500 times while payouts are created and sent; an hour or so',
    run: () => import('./crash/payout_soak.ts'),
  },
  money: {
    doc: 'kills APIs, workers and Postgres amid sales, clicks, refunds, payouts and webhooks: [--kills 300] [--seed N]; an hour or so',
    run: async (asked) => (await import('./crash/money/soak.ts')).soakMoney(asked),
  },
  repeats: {
    doc: 'the tests that repeat what they make up, as often as effort.ts says for a soak; half an hour, or these alone: [FILE…]',
    run: repeat,
  },
  api: {
    doc: 'requests made up from the description, from another seed each time: [--seconds 600] [--seed N]',
    run: async (asked) => (await import('./core/http/soak.ts')).soakApi(asked),
  },
  windows: {
    doc: 'windows of outreach in every time zone, by minutes about each change of a clock: [--seconds 600] [--seed N]',
    run: async (asked) => (await import('./recruitment/outreach/windows_soak.ts')).soakWindows(asked),
  },
  restore: {
    doc: "restores a dump and a base backup to older states, and goes on: nothing is sent or paid twice; with Debian's Postgres 15, some minutes",
    run: async () => (await import('./servers/restore_soak.ts')).soakRestore(),
  },
  upgrade: {
    doc: 'the version before goes on while the database is migrated, and beside this version: [COMMIT], else the newest tag v* or the last change of migrations; a minute',
    run: async ({ files }) => (await import('./servers/upgrade_soak.ts')).soakUpgrade(files[0]),
  },
  doctor: {
    doc: "brings servers into the states that doctor tells of: WAL, slots, replicas, transaction ids; with Debian's Postgres 15, three minutes",
    run: async () => (await import('./servers/doctor_soak.ts')).soakDoctor(),
  },
  failover: {
    doc: "kills the primary amid sales and promotes a replica, synchronous and not; with Debian's Postgres 15, two minutes",
    run: async () => (await import('./servers/failover_soak.ts')).soakFailover(),
  },
  servers: {
    doc: 'tests on Postgres 15, 16, 17 and 18, and PgBouncer in both modes: [VERSION… or pgbouncer]; half an hour or so',
    run: async (asked) => (await import('./servers/servers_soak.ts')).soakServers(asked),
  },
  patterns: {
    doc: 'recheck proves every pattern linear, and libraries read hostile texts of growing lengths; half an hour or so',
    run: async () => (await import('./patterns/soak.ts')).soakPatterns(),
  },
  subscriber: {
    doc: 'a warehouse subscribes to the publication rail_data, and has every row; a minute',
    run: async () => (await import('./data/subscriber_soak.ts')).soakSubscriber(),
  },
  prometheus: {
    doc: 'a real Prometheus (that of the machine, or of Debian) takes rules and dashboard, scrapes, and tells of every fault; ten minutes or so',
    run: async () => (await import('./metrics/prometheus_soak.ts')).soakPrometheus(),
  },
  processors: {
    doc: '10,000 events of a billing processor, shuffled, doubled and lost, while API and worker are killed: [--kills 200] [--seed N]; half an hour or so',
    run: async (asked) => (await import('./program/processors/soak.ts')).soakProcessors(asked),
  },
  outreach: {
    doc: 'kills workers and Postgres while emails are sent: [--kills 1000] [--sends 100000]; two hours or so, --kills 300 --sends 10000 some twenty minutes',
    run: async (asked) => (await import('./crash/outreach_soak.ts')).soakOutreach(asked),
  },
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '600' },
    seed: { type: 'string', default: `${randomInt(2 ** 31)}` },
    kills: { type: 'string' },
    sends: { type: 'string', default: '100000' },
  },
});
const [name = 'worker', ...files] = positionals;
const asked = {
  files,
  ...{ seconds: Number(values.seconds), seed: Number(values.seed) },
  ...{ kills: values.kills === undefined ? undefined : Number(values.kills), sends: Number(values.sends) },
};
const soak = soaks[name];
if (soak && asked.seconds > 0 && asked.sends > (asked.kills ?? 1) && Number.isInteger(asked.seed)) {
  await soak.run(asked);
} else {
  const names = Object.entries(soaks).map(([each, { doc }]) => `  ${each.padEnd(10)} ${doc}\n`);
  const fault = soak
    ? '--seconds, --seed, --kills and --sends are numbers, with more sends than kills.'
    : `There is no soak '${name}'.`;
  process.stderr.write(`${fault} There are:\n${names.join('')}`);
  process.exitCode = 2;
}

async function repeat({ files: named }: Asked): Promise<void> {
  const repeating = () =>
    globSync('test/**/*.test.ts').filter((file) => readFileSync(file, 'utf8').includes('/effort.ts'));
  const files = named.length > 0 ? named : repeating();
  const env = { ...process.env, RAIL_TEST_EFFORT: 'soak' };
  const [code] = await once(spawn(process.execPath, ['test/run.ts', ...files], { env, stdio: 'inherit' }), 'close');
  process.exitCode = code ?? 1;
}
