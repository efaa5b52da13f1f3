/**
 * `npm run soak -- payouts`: 500 kills of workers while payouts are created and sent, in several lines at a time: most of a round is waiting. It
 * takes an hour or so. It says how far it is after each, and what was found by then holds if it is stopped.
 */
import t from 'tap';
import { startRail } from '../harness.ts';
import type { Fault } from '../program/payouts/rails/provider_server.ts';
import { shareCompiled } from '../runner/warm_up.ts';
import { killsOf, spread } from './payout_kills.ts';
import { countRound, type Kill, killedRound, openPayoutLine, type PayoutLine, type Way } from './payout_round.ts';

t.setTimeout(4 * 3_600_000);

const kills = 500;
/** Some end before the statement at which the worker is killed: there are more than kills. */
const rounds_of: Record<Way, number> = { rail: 720, file: 180 };
const lines_at_once = 4;
const began = Date.now();
// A worker is started for each kill.
await shareCompiled(t);

interface Round {
  way: Way;
  kill: Kill;
  trouble: (Fault | undefined)[];
}

t.test('whenever the worker dies, each payout is paid once and none is forgotten', async (t) => {
  const first = await openLine();
  const rounds = await roundsOf(first);
  const total = rounds.length;
  const tally = { rounds: 0, killed: 0, faulty: 0 };
  const work = async (opened: PayoutLine | Promise<PayoutLine>) => {
    const line = await opened;
    for (let next = rounds.shift(); next && tally.killed < kills; next = rounds.shift()) {
      const { way, kill, trouble } = next;
      const outcome = await killedRound(line, way, kill, trouble);
      tally.rounds++;
      if (outcome.killed) tally.killed++;
      if (outcome.faults.length > 0) tally.faulty++;
      t.same(outcome.faults, [], `${way}, ${outcome.text}${outcome.killed ? '' : ', not reached'}`);
      const seconds = Math.round((Date.now() - began) / 1_000);
      process.stderr.write(
        `${tally.rounds} of ${total} rounds, ${tally.killed} kills, ${tally.faulty} faulty, ${seconds} s\n`,
      );
    }
    return line;
  };
  const others = Array.from({ length: lines_at_once - 1 }, openLine);
  const lines = await Promise.all([first, ...others].map(work));
  for (const { provider, rail } of lines) {
    const moved = await provider.moved();
    t.same(
      moved.filter(({ times }) => times !== 1),
      [],
      `${moved.length} payments, each once`,
    );
    t.same(await rail.audit(), []);
  }
  t.ok(tally.killed >= kills, `${tally.killed} kills`);
});

/** A line with a database and a provider of its own. */
async function openLine(): Promise<PayoutLine> {
  return openPayoutLine(await startRail({ worker: false, durability: 'durable' }));
}

/** Four by a rail, then one by a file: what is stopped has seen both. */
async function roundsOf(line: PayoutLine): Promise<Round[]> {
  const by_rail = spread(killsOf(await countRound(line, 'rail'), rounds_of.rail)).map(
    (one): Round => ({ way: 'rail', ...one }),
  );
  const by_file = spread(killsOf({ ...(await countRound(line, 'file')), calls: 0 }, rounds_of.file)).map(
    ({ kill }): Round => ({ way: 'file', kill, trouble: [] }),
  );
  return by_file.flatMap((one, nth) => [...by_rail.slice(4 * nth, 4 * nth + 4), one]);
}
