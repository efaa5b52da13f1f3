/** `npm run soak -- payouts`: 500 kills of the worker while payouts are created and sent. It takes an hour or so. */
import t from 'tap';
import { startRail } from '../harness.ts';
import { killsOf } from './payout_kills.ts';
import { countRound, killedRound, openPayoutLine, type Way } from './payout_round.ts';

t.setTimeout(4 * 3_600_000);

const kills: Record<Way, number> = { rail: 400, file: 100 };
const rail = await startRail({ worker: false, durability: 'durable' });

t.test('whenever the worker dies, each payout is paid once and none is forgotten', async (t) => {
  const line = await openPayoutLine(rail);
  let killed = 0;
  for (const way of ['rail', 'file'] as const) {
    const { statements, calls } = await countRound(line, way);
    for (const { kill, trouble } of killsOf({ statements, calls: way === 'rail' ? calls : 0 }, kills[way])) {
      const outcome = await killedRound(line, way, kill, way === 'rail' ? trouble : []);
      if (outcome.killed) killed++;
      t.same(outcome.faults, [], `${way}, ${outcome.text}${outcome.killed ? '' : ', not reached'}`);
    }
  }
  const moved = await line.provider.moved();
  t.same(
    moved.filter(({ times }) => times !== 1),
    [],
    `${moved.length} payments, each once; ${killed} kills`,
  );
  t.same(await rail.audit(), []);
});
