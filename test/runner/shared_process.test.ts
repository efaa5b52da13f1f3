import { join } from 'node:path';
import t, { type Test } from 'tap';
import { shareProcess } from './shared_process.ts';

/** Returns the results of files with these texts, one after the other, and of their end. */
async function resultsOf(t: Test, ...texts: string[]) {
  const names = texts.map((_, nth) => `file_${nth}.test.ts`);
  const files = names.map((name, nth) => [name, `import t from 'tap';\n${texts[nth]}`]);
  const directory = t.testdir(Object.fromEntries(files));
  const shared = shareProcess({});
  const results = [];
  for (const name of names) results.push(await shared.run(join(directory, name)));
  return { results, end: await shared.end() };
}

const passes = `t.test('a', async (t) => { t.ok(1); t.ok(1); }); t.test('b', async (t) => { t.ok(1); }); console.log('of the file that passes');`;

t.test('counts the tests of each file', async (t) => {
  const { results, end } = await resultsOf(t, passes, `t.ok(1);`, passes);
  t.match(results, [
    { file: /file_0/, passed: 2, failed: 0, complaint: '' },
    { file: /file_1/, passed: 1, failed: 0, complaint: '' },
    { file: /file_2/, passed: 2, failed: 0, complaint: '' },
  ]);
  t.equal(end, undefined);
});

t.test('runs a file that is named again', async (t) => {
  const directory = t.testdir({ 'file.test.ts': `import t from 'tap';\n${passes}` });
  const shared = shareProcess({});
  for (let run = 1; run <= 3; run++)
    t.match(await shared.run(join(directory, 'file.test.ts')), { passed: 2, failed: 0 }, `run ${run}`);
  t.equal(await shared.end(), undefined);
});

t.test('a file is torn down before the next one begins, in the same process', async (t) => {
  const first = `globalThis.steps = ['first']; t.teardown(() => steps.push('torn down'));`;
  const second = `t.test('b', async (t) => t.same(steps, ['first', 'torn down']));`;
  const { results } = await resultsOf(t, `${first} ${passes}`, second);
  t.match(results, [{ failed: 0 }, { passed: 1, failed: 0 }]);
});

const endings = {
  'fails in an assert': `t.ok(1); t.test('inner', async (t) => { t.equal(1, 2); });`,
  'throws before its first test': `throw new Error('no more');`,
  'rejects where nobody waits': `t.test('a', async (t) => { Promise.reject(new Error('no more')); await new Promise((done) => setTimeout(done, 50)); });`,
  'fails in a teardown': `t.ok(1); t.teardown(() => { throw new Error('no more'); });`,
  'exits with success in the middle': `t.test('a', async (t) => { t.ok(1); process.exit(0); });`,
  'is killed': `t.ok(1); process.kill(process.pid, 'SIGKILL');`,
  'runs out of time': `t.setTimeout(500); t.test('a', async (t) => { await new Promise((done) => setTimeout(done, 60_000)); });`,
};

t.test('a file that fails, however it does, has failed, and those around it have not', async (t) => {
  const texts = Object.values(endings).flatMap((text) => [passes, text]);
  const { results, end } = await resultsOf(t, ...texts, passes);
  for (const [nth, ending] of Object.keys(endings).entries())
    await t.test(`as one that ${ending}`, async (t) => {
      const [before, failed, after] = results.slice(2 * nth);
      t.match([before, after], Array(2).fill({ passed: 2, failed: 0 }));
      t.ok((failed?.failed ?? 0) > 0);
      t.notMatch(failed?.complaint, 'of the file that passes');
    });
  t.equal(end, undefined);
});

t.test('a process that does not end well is a failure of its own', async (t) => {
  const { results, end } = await resultsOf(t, `t.ok(1); process.once('exit', () => { process.exitCode = 3; });`);
  t.match(results, [{ failed: 0 }]);
  t.match(end, { file: /the end of .*file_0/, failed: 1 });
});
