import t from 'tap';
import { TimedThread } from '../../../src/core/threads/timed_thread.ts';

const open = (module = './trying_thread.ts') =>
  new TimedThread<string, string>(new URL(module, import.meta.url), {
    ...{ name: 'Trying', most_ms: 500, most_heap_mib: 32 },
  });
const codeOf = (asked: Promise<unknown>) =>
  asked.then(
    () => 'answered',
    ({ code, message }) => code ?? message,
  );

t.test('ends what takes too long, needs too much, or ends by itself, and answers what comes after', async (t) => {
  const thread = open();
  t.equal(thread.id, undefined, 'it starts when it is first asked');
  t.equal(await thread.ask('one'), 'ONE');
  const first = thread.id;
  const told = ['for ever', 'two', 'a pattern', 'three', 'memory', 'four', 'end', 'fail', 'five'].map((task) =>
    codeOf(thread.ask(task)),
  );
  let goes_on = false;
  setImmediate(() => {
    goes_on = true;
  });
  t.same(await Promise.all(told), [
    'took_too_long',
    'answered',
    'took_too_long',
    'answered',
    'ERR_WORKER_OUT_OF_MEMORY',
    'answered',
    'The thread Trying has ended.',
    'of_its_own',
    'answered',
  ]);
  t.ok(goes_on, 'the rest of the process meanwhile');
  t.ok(thread.id !== undefined && thread.id !== first, 'in another thread');
  thread.close();
  t.equal(thread.id, undefined);
  t.equal(await thread.ask('six'), 'SIX', 'a closed one is opened anew');
  thread.close();
});

t.test('fails where its module cannot be loaded, and tries it again', async (t) => {
  const thread = open('./no_such_thread.ts');
  t.equal(await codeOf(thread.ask('one')), 'ERR_MODULE_NOT_FOUND');
  t.equal(await codeOf(thread.ask('two')), 'ERR_MODULE_NOT_FOUND');
});
