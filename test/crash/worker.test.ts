import t from 'tap';
import { startRail } from '../harness.ts';
import { effort } from '../runner/effort.ts';
import { countStatements, crashAt, openLine } from './line.ts';

const rail = await startRail({ worker: false, durability: 'durable' });
const line = await openLine(rail);

t.test('survives kill -9 of the worker between any two statements of the slice', async (t) => {
  // The first time the worker also catches up on the schedules that it missed.
  const statements = Math.min(await countStatements(line), await countStatements(line));
  t.ok(statements > 20, `the worker's part of the slice is ${statements} statements`);
  const rounds = effort.worker_kills;
  let killed = 0;
  for (let round = 0; round < rounds; round++) {
    const nth = 1 + Math.floor((round * statements) / rounds);
    const side = round % 2 === 0 ? 'before' : 'after';
    const outcome = await crashAt(line, side, nth);
    if (outcome.killed) killed++;
    t.same(outcome.faults, [], `killed ${side} statement ${nth}: ${outcome.text}`);
  }
  t.ok(killed > rounds / 2, `${killed} of ${rounds} rounds killed it`);
});

t.test('survives kill -9 of a worker that was just given jobs', async (t) => {
  for (let nth = 1; nth <= effort.jobs_kills; nth++) {
    const outcome = await crashAt(line, 'jobs', nth);
    t.same(outcome.faults, [], `killed when it was given jobs for the ${nth}. time`);
    t.ok(outcome.killed);
  }
});
