/**
 * `npm run soak -- payouts`: 500 kills of the worker while payouts are created and sent. It takes an hour or so. It says how far it is after
 * each, and what was found by then holds if it is stopped.
 */
import t from 'tap';
import { startRail } from '../harness.ts';
import { killsOf, spread } from './payout_kills.ts';
import { countRound, killedRound, openPayoutLine, type Way } from './payout_round.ts';

t.setTimeout(4 * 3_600_000);

const kills: Record<Way, number> = { rail: 400, file: 100 };
const began = Date.now();
const rail = await startRail({ worker: false, durability: 'durable' });

t.test('whenever the worker dies, each payout is paid once and none is forgotten', async (t) => {
  const line = await openPayoutLine(rail);
  let killed = 0;
  let faulty = 0;
  const by_rail = spread(killsOf(await countRound(line, 'rail'), kills.rail)).map((one) => ({
    way: 'rail' as Way,
    ...one,
  }));
  const by_file = spread(killsOf({ ...(await countRound(line, 'file')), calls: 0 }, kills.file)).map(({ kill }) => ({
    ...{ way: 'file' as Way, kill, trouble: [] },
  }));
  // Four by a rail, then one by a file: what is stopped has seen both.
  const rounds = by_file.flatMap((one, nth) => [...by_rail.slice(4 * nth, 4 * nth + 4), one]);
  for (const [nth, { way, kill, trouble }] of rounds.entries()) {
    const outcome = await killedRound(line, way, kill, trouble);
    if (outcome.killed) killed++;
    if (outcome.faults.length > 0) faulty++;
    t.same(outcome.faults, [], `${way}, ${outcome.text}${outcome.killed ? '' : ', not reached'}`);
    const seconds = Math.round((Date.now() - began) / 1_000);
    process.stderr.write(`${nth + 1} of ${rounds.length} rounds, ${killed} kills, ${faulty} faulty, ${seconds} s\n`);
  }
  const moved = await line.provider.moved();
  t.same(
    moved.filter(({ times }) => times !== 1),
    [],
    `${moved.length} payments, each once; ${killed} kills`,
  );
  t.same(await rail.audit(), []);
});
