import t from 'tap';
import { startRail } from '../harness.ts';
import { effort } from '../runner/effort.ts';
import { killsOf, spread } from './payout_kills.ts';
import { countRound, killedRound, openPayoutLine } from './payout_round.ts';

/** On a busy machine a few rounds are enough: a soak makes hundreds. */
const until = Date.now() + 300_000;
const rail = await startRail({ worker: false, durability: 'durable' });
const line = await openPayoutLine(rail);

t.test('pays each payout once when the worker is killed between any two statements and calls', async (t) => {
  const counts = await countRound(line, 'rail');
  t.ok(
    counts.statements > 20 && counts.calls >= 3,
    `a round is ${counts.statements} statements and ${counts.calls} calls`,
  );
  const rounds = effort.payout_kills;
  let killed = 0;
  for (const { kill, trouble } of spread(killsOf(counts, rounds))) {
    if (killed > 3 && Date.now() > until) break;
    const outcome = await killedRound(line, 'rail', kill, trouble);
    if (outcome.killed) killed++;
    t.same(outcome.faults, [], outcome.text);
  }
  t.ok(killed > 3, `${killed} of ${rounds} rounds killed it`);
  t.ok(
    (await line.provider.moved()).every(({ times }) => times === 1),
    'by the count of the rail',
  );
});

t.test('creates the payouts of a batch, and freezes its file, once when the worker is killed', async (t) => {
  const { statements } = await countRound(line, 'file');
  const rounds = effort.payout_file_kills;
  let killed = 0;
  for (const { kill } of spread(killsOf({ statements, calls: 0 }, rounds))) {
    if (killed > rounds / 2 && Date.now() > until) break;
    const outcome = await killedRound(line, 'file', kill);
    if (outcome.killed) killed++;
    t.same(outcome.faults, [], outcome.text);
  }
  t.ok(killed > rounds / 2, `${killed} of ${rounds} rounds killed it`);
});
