import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readdirSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { dropDatabases, prepareDataDir, startPostgresIn } from './postgres.ts';
import type { FileResult } from './runner/outcome.ts';
import { killTestFiles } from './runner/process_group.ts';
import { profiling, startProfile } from './runner/profile.ts';
import { makeRunDirectory, postgresOf, removeRunDirectory } from './runner/run_directory.ts';
import { shareProcess } from './runner/shared_process.ts';
import { runTestFile } from './runner/test_file.ts';
import { warmUp } from './runner/warm_up.ts';

/**
 * `npm test`: typecheck, lint, then every test file, on one Postgres that this starts. The last line counts tests: `N passed, N failed`.
 * Arguments name test files or folders; without any, all run. `--profile` prints the CPU time of each file, `--at-once` says how many run at a time.
 */

/** Tests wait more than they compute. */
const usual_files_at_once = 3 * availableParallelism();
/** These take the longest, some of them waiting, so they start first: no long file is left running alone at the end. */
const slow = [
  'test/recruitment/outreach/reading',
  'test/core/http/requests.test.ts',
  'test/recruitment/outreach/odd_servers.test.ts',
  'test/every_operation.test.ts',
  'test/crash/',
  'test/replicas.test.ts',
  'test/commands/',
  'test/patterns/',
  'test/webhooks/queue/',
  'test/embedded_postgres/',
  'test/data/graphql/',
  'test/recruitment/outreach/',
  'test/recruitment/discovery/',
  'test/metrics.test.ts',
  'test/core/description/',
  'test/program/payouts/',
  'test/mail/',
];
/** These change what belongs to the whole process, spy on it, or start Postgres by themselves: each has a process of its own. */
const alone = [
  'test/bench/',
  'test/core/jobs/clock.test.ts',
  'test/core/net/hostile_address.test.ts',
  'test/embedded_postgres/',
  'test/mail/incoming/hostile.test.ts',
  'test/patterns/',
  'test/metrics.test.ts',
  'test/products.test.ts',
  'test/runner/',
  'test/webhooks/queue/receivers.test.ts',
];
const slowest_shown = 10;
/** The lines of a file's first failure that are shown at the end. */
const lines_shown = 20;

const { values: asked, positionals: named } = parseArgs({
  allowPositionals: true,
  options: {
    profile: { type: 'boolean', default: false },
    'at-once': { type: 'string', default: `${usual_files_at_once}` },
  },
});
const files_at_once = Number(asked['at-once']);
const files = testFiles(named);
const directory = await makeRunDirectory();
for (const [signal, number] of [['SIGINT', 2] as const, ['SIGTERM', 15] as const])
  process.once(signal, async () => {
    killTestFiles();
    await removeRunDirectory(directory);
    process.exit(128 + number);
  });

let passed = 0;
let failed = 0;
try {
  const [environment] = await Promise.all([startServers(), named.length === 0 ? runChecks() : undefined]);
  const profileOf = asked.profile ? startProfile(await postmasters()) : undefined;
  const results = await runAll(environment);
  for (const result of results) {
    passed += result.passed;
    failed += result.failed;
  }
  if (profileOf) console.log(`\n${profileOf(results)}`);
  else if (results.length > 1) printSlowest(results);
} finally {
  await removeRunDirectory(directory);
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

function testFiles(names: string[]): string[] {
  const missing = names.filter((name) => !existsSync(name));
  if (missing.length > 0) throw new Error(`No such test file: ${missing.join(', ')}`);
  const found = (names.length === 0 ? ['test'] : names).flatMap((name) =>
    statSync(name).isDirectory() ? globSync(join(name, '**/*.test.ts')) : [name],
  );
  const rank = (file: string) => {
    const nth = slow.findIndex((start) => file.startsWith(start));
    return nth === -1 ? slow.length : nth;
  };
  return found.map((file) => relative('', file)).toSorted((a, b) => rank(a) - rank(b) || a.localeCompare(b));
}

async function runChecks(): Promise<void> {
  for (const check of ['tsc --noEmit --checkers 2', 'biome check .']) {
    const [program, ...args] = check.split(' ') as [string, ...string[]];
    const [code] = await once(spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] }), 'close');
    if (code === 0) passed++;
    else failed++;
  }
}

/** Starts the servers of a run, and returns the environment of its test files. */
async function startServers(): Promise<NodeJS.ProcessEnv> {
  // Tests that kill processes run on a Postgres that is as durable as in production.
  const needsDurable = files.some((file) => file.startsWith('test/crash/'));
  const NODE_COMPILE_CACHE = join(directory, 'compiled');
  const startAll = async (prepared: string) => {
    const durable = needsDurable ? startPostgresIn(directory, 'durable', prepared) : undefined;
    return { prepared, servers: await Promise.all([startPostgresIn(directory, 'fast', prepared), durable]) };
  };
  const [{ prepared, servers }] = await Promise.all([
    prepareDataDir(directory).then(startAll),
    files.length > files_at_once ? warmUp({ NODE_COMPILE_CACHE }) : undefined,
  ]);
  const [fast, durable] = servers;
  return {
    RAIL_TEST_POSTGRES: fast,
    RAIL_TEST_DURABLE_POSTGRES: durable,
    RAIL_TEST_DATA_DIR: prepared,
    // Whatever the tests leave behind lies in here, and goes with it.
    TMPDIR: directory,
    NODE_COMPILE_CACHE,
    ...(asked.profile ? profiling : {}),
  };
}

/** The process ids of the Postgres servers of this run. */
async function postmasters(): Promise<number[]> {
  const pids = await Promise.all(readdirSync(directory).map((name) => postgresOf(join(directory, name))));
  return pids.filter((pid) => pid !== undefined);
}

async function runAll(environment: NodeJS.ProcessEnv): Promise<FileResult[]> {
  const results: FileResult[] = [];
  const add = (result: FileResult) => {
    results.push(result);
    print(result);
  };
  const waiting = files.values();
  const { RAIL_TEST_POSTGRES: fast, RAIL_TEST_DURABLE_POSTGRES: durable } = environment;
  const servers = [fast, durable].filter((server) => server !== undefined);
  const runNext = async () => {
    const shared = shareProcess(environment);
    for (const file of waiting) {
      const runsAlone = files.length === 1 || alone.some((start) => file.startsWith(start));
      add(await (runsAlone ? runTestFile(file, environment, { isOnly: files.length === 1 }) : shared.run(file)));
      for (const server of servers) await dropDatabases(server, file);
    }
    const failure = await shared.end();
    if (failure) add(failure);
  };
  await Promise.all(Array.from({ length: files_at_once }, runNext));
  return results;
}

function print({ file, seconds, passed, failed, complaint }: FileResult): void {
  const outcome = failed === 0 ? 'ok    ' : 'not ok';
  console.log(`${outcome} ${seconds.toFixed(1).padStart(6)} s  ${file}: ${passed} passed, ${failed} failed`);
  if (complaint) console.log(complaint);
}

function printSlowest(results: FileResult[]): void {
  const slowest = results.toSorted((a, b) => b.seconds - a.seconds).slice(0, slowest_shown);
  console.log('\nThe slowest files:');
  for (const { file, seconds } of slowest) console.log(`${seconds.toFixed(1).padStart(8)} s  ${file}`);
  printFailures(results.filter(({ failed }) => failed > 0));
}

/** The first failure of each file once more: where the output is cut, its end is what is kept. */
function printFailures(broken: FileResult[]): void {
  for (const { file, complaint } of broken) {
    const lines = complaint.split('\n');
    const first = Math.max(
      0,
      lines.findIndex((line) => /not ok|Error:/.test(line)),
    );
    console.log(`\nFailed: ${file}\n${lines.slice(first, first + lines_shown).join('\n')}`);
  }
}
