import fc from 'fast-check';
import t from 'tap';
import { type BatchOptions, batched } from '../../../src/core/postgres/batch.ts';

/** Work that goes on until it is told to end, and remembers what it was given. */
function startWork(most: number, patient: Pick<BatchOptions<string>, 'canWait' | 'max_wait_ms'> = {}) {
  const batches: string[][] = [];
  const ends: PromiseWithResolvers<void>[] = [];
  const call = batched(
    async (items: string[]) => {
      batches.push(items);
      const end = Promise.withResolvers<void>();
      ends.push(end);
      await end.promise;
      return items.map((item) => item.toUpperCase());
    },
    { most, ...patient },
  );
  /** Waits until the nth batch has begun, counted from 0. */
  const begun = async (nth: number) => {
    while (batches.length <= nth) await new Promise(setImmediate);
    return ends[nth] as PromiseWithResolvers<void>;
  };
  return { call, batches, begun };
}

t.test(
  'does together what is asked for in one turn of the event loop, and gives everybody their own result',
  async (t) => {
    const { call, batches, begun } = startWork(10);
    const answers = Promise.all([call('b'), call('a'), Promise.resolve().then(() => call('c'))]);
    (await begun(0)).resolve();
    t.same(await answers, ['B', 'A', 'C']);
    t.same(batches, [['b', 'a', 'c']]);
  },
);

t.test('does next, together, what is asked for while the work before is on', async (t) => {
  const { call, batches, begun } = startWork(10);
  const first = call('a');
  const end = await begun(0);
  const meanwhile = [call('b')];
  await new Promise(setImmediate);
  meanwhile.push(call('c'));
  await new Promise(setImmediate);
  t.same(batches, [['a']], 'never two at a time');
  end.resolve();
  t.equal(await first, 'A');
  (await begun(1)).resolve();
  t.same(await Promise.all(meanwhile), ['B', 'C']);
  t.same(batches, [['a'], ['b', 'c']]);

  const later = call('d');
  (await begun(2)).resolve();
  t.equal(await later, 'D', 'and begins anew when nothing was asked for meanwhile');
});

t.test('does at most so many at once, in the order in which they were asked for', async (t) => {
  const { call, batches, begun } = startWork(2);
  const answers = Promise.all(['a', 'b', 'c', 'd', 'e'].map(call));
  for (const nth of [0, 1, 2]) (await begun(nth)).resolve();
  t.same(await answers, ['A', 'B', 'C', 'D', 'E']);
  t.same(batches, [['a', 'b'], ['c', 'd'], ['e']]);
});

t.test('keeps what can wait until something that cannot is asked for, or there is much of it', async (t) => {
  const { call, batches, begun } = startWork(3, { canWait: (item) => item !== 'now', max_wait_ms: 600_000 });
  const answers = ['a', 'b'].map(call);
  await new Promise(setImmediate);
  t.same(batches, []);
  answers.push(call('now'));
  const first = await begun(0);
  answers.push(...['c', 'd', 'e', 'f'].map(call));
  first.resolve();
  (await begun(1)).resolve();
  await new Promise(setImmediate);
  t.same(
    batches,
    [
      ['a', 'b', 'now'],
      ['c', 'd', 'e'],
    ],
    'also when it came while other work was on',
  );
  answers.push(call('now'));
  (await begun(2)).resolve();
  t.same(await Promise.all(answers), ['A', 'B', 'NOW', 'C', 'D', 'E', 'F', 'NOW']);
});

t.test('keeps it no longer than the longest wait', async (t) => {
  const { call, batches, begun } = startWork(3, { canWait: () => true, max_wait_ms: 1 });
  const answers = ['a', 'b'].map(call);
  const first = await begun(0);
  answers.push(call('c'));
  first.resolve();
  (await begun(1)).resolve();
  t.same(await Promise.all(answers), ['A', 'B', 'C']);
  t.same(batches, [['a', 'b'], ['c']]);
});

t.test('keeps nothing when it is told to hurry, also while other work is on', async (t) => {
  const { call, batches, begun } = startWork(3, { canWait: () => true, max_wait_ms: 600_000 });
  const answers = [call('a')];
  call.hurry();
  const first = await begun(0);
  answers.push(call('b'));
  call.hurry();
  first.resolve();
  (await begun(1)).resolve();
  answers.push(call('c'));
  await new Promise(setImmediate);
  t.same(batches, [['a'], ['b']], 'what comes later waits again');
  call.hurry();
  (await begun(2)).resolve();
  t.same(await Promise.all(answers), ['A', 'B', 'C']);
});

t.test('begins one batch when the longest wait ends just as the next call cannot wait', async (t) => {
  const { call, batches, begun } = startWork(3, { canWait: (item) => item !== 'now', max_wait_ms: 1 });
  // The event loop comes to its timers first now, and then to what is due at once.
  await new Promise(setImmediate);
  const answers = [call('a'), call('now')];
  for (const end = performance.now() + 3; performance.now() < end; );
  const first = await begun(0);
  answers.push(call('later'));
  await new Promise(setImmediate);
  t.same(batches, [['a', 'now']]);
  first.resolve();
  (await begun(1)).resolve();
  t.same(await Promise.all(answers), ['A', 'NOW', 'LATER']);
});

t.test('fails all who shared the work that failed, and nobody else', async (t) => {
  const { call, begun } = startWork(2);
  const answers = Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map(call));
  (await begun(0)).resolve();
  (await begun(1)).reject(new Error('it broke'));
  (await begun(2)).resolve();
  t.same(
    (await answers).map((answer) => (answer.status === 'fulfilled' ? answer.value : answer.reason.message)),
    ['A', 'B', 'it broke', 'it broke', 'E'],
  );
});

t.test('goes on after work that throws before it has begun', async (t) => {
  let calls = 0;
  const call = batched(
    (items: number[]): Promise<number[]> => {
      if (++calls === 1) throw new Error('at once');
      return Promise.resolve(items);
    },
    { most: 1 },
  );
  const answers = [call(1), call(2)];
  await t.rejects(answers[0] as Promise<number>, /at once/);
  t.equal(await answers[1], 2);
});

t.test('loses, doubles and reorders nothing, whenever calls come and whatever fails', async () => {
  const moment = fc.record({
    calls: fc.integer({ min: 0, max: 5 }),
    ends: fc.constantFrom('well', 'badly', 'not yet'),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(moment, { maxLength: 30 }),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 3 }),
      async (moments, most, every) => {
        let on: PromiseWithResolvers<boolean> | undefined;
        const done: number[] = [];
        const failed: number[] = [];
        const call = batched(
          async (items: number[]) => {
            if (on) throw new Error('two at a time');
            if (items.length > most) throw new Error('too many at once');
            on = Promise.withResolvers<boolean>();
            const isWell = await on.promise;
            on = undefined;
            (isWell ? done : failed).push(...items);
            if (!isWell) throw new Error(`with ${items.join(' ')}`);
            return items.map((item) => item * 2);
          },
          { most, canWait: (item) => item % every !== 0, max_wait_ms: 1 },
        );
        const answers: Promise<number>[] = [];
        let answered = 0;
        for (const { calls, ends } of moments) {
          for (let nth = 0; nth < calls; nth++) {
            const answer = call(answers.length);
            const count = () => answered++;
            answer.then(count, count);
            answers.push(answer);
          }
          await new Promise(setImmediate);
          if (ends !== 'not yet') on?.resolve(ends === 'well');
        }
        while (answered < answers.length) {
          on?.resolve(true);
          await new Promise(setImmediate);
        }
        const settled = await Promise.allSettled(answers);
        const isRight = settled.every((answer, nth) =>
          answer.status === 'fulfilled' ? answer.value === nth * 2 && done.includes(nth) : failed.includes(nth),
        );
        const isInOrder = [done, failed].every((items) =>
          items.every((item, nth) => nth === 0 || item > (items[nth - 1] as number)),
        );
        return isRight && isInOrder;
      },
    ),
  );
});
