import { join } from 'node:path';
import t, { type Test } from 'tap';
import { runTestFile } from './test_file.ts';

const begin = `import t from 'tap';\n`;

/** Returns the result of a file with this text. */
async function resultOf(t: Test, text: string) {
  const directory = t.testdir({ 'some.test.ts': begin + text });
  const { seconds, ...result } = await runTestFile(join(directory, 'some.test.ts'), {}, { isOnly: false });
  return result;
}

t.test('counts the tests of a file that passes, and says nothing more of it', async (t) => {
  const text = `t.ok(1); t.test('outer', async (t) => { t.ok(1); for (const name of 'ab') await t.test(name, async (t) => { t.ok(1); t.ok(1); }); });`;
  t.match(await resultOf(t, text), { file: /some\.test\.ts$/, passed: 2, failed: 0, complaint: /^$/ });
});

t.test('counts a file that has no test inside as one', async (t) => {
  t.match(await resultOf(t, `t.ok(1); t.ok(1);`), { passed: 1, failed: 0, complaint: /^$/ });
});

t.test('counts each test that failed', async (t) => {
  const text = `for (const n of [1, 2, 3]) t.test('nth', async (t) => { t.equal(n, 2); t.equal(n, 2); });`;
  t.match(await resultOf(t, text), { passed: 1, failed: 2 });
});

t.test('shows what failed, and leaves out what passed', async (t) => {
  const text = `t.ok(1, 'this holds'); t.test('inner', async (t) => { t.equal(1, 2, 'this does not'); });`;
  const { passed, failed, complaint } = await resultOf(t, text);
  t.same([passed, failed], [0, 1]);
  t.match(complaint, /not ok 1 - this does not/);
  t.notMatch(complaint, /ok \d+ - this holds/);
});

const endings = {
  'throws before its first test': `throw new Error('no more');`,
  'exits with success in the middle': `t.test('a', async (t) => { t.ok(1); process.exit(0); });`,
  'says nothing at all': `process.exit(0);`,
  'is killed': `t.ok(1); process.kill(process.pid, 'SIGKILL');`,
  'waits for what never comes': `t.ok(1); t.test('a', () => new Promise(() => {}));`,
};

for (const [ending, text] of Object.entries(endings))
  t.test(`a file that ${ending} has failed`, async (t) => {
    const { failed, complaint } = await resultOf(t, text);
    t.ok(failed > 0);
    t.match(complaint, /# (exit code \d+|ended by SIG[A-Z]+)$/);
  });
