/** `npm run soak -- money`: says how far it is after each kill. */
import t from 'tap';
import { numbers } from '../../numbers.ts';
import { shareCompiled } from '../../runner/warm_up.ts';
import { killAmidMoney } from './kills.ts';

/** @param seed of what is asked and killed; what happens at the same time differs all the same */
export async function soakMoney({ kills = 300, seed }: { kills?: number | undefined; seed: number }): Promise<void> {
  t.setTimeout(12 * 3_600_000);
  // A process is started for each kill.
  await shareCompiled(t);
  const began = Date.now();
  const progress = (line: string) => process.stderr.write(`${line}, ${Math.round((Date.now() - began) / 1_000)} s\n`);
  await t.test(`whatever is killed, no money is lost, doubled or told out of order (--seed ${seed})`, async (t) => {
    const { kills: killed, faults, ...counts } = await killAmidMoney({ kills, below: numbers(seed), progress });
    process.stdout.write(
      `${killed.api} kills of APIs, ${killed.worker} of workers and ${killed.postgres} of Postgres over ${counts.requests} requests, ${counts.payouts} payouts and ${counts.webhooks} webhooks: ${faults.length} faults (--seed ${seed})\n`,
    );
    t.same(faults, []);
  });
}
