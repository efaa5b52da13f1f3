/**
 * `npm run soak -- outreach`: kills of workers and Postgres while emails are sent: 1,000 over 100,000 emails, as `--kills` and `--sends` say
 * else. It takes two hours or so, and says how far it is after each kill.
 */
import t from 'tap';
import { shareCompiled } from '../runner/warm_up.ts';
import { killWhileSending } from './outreach_kills.ts';

export async function soakOutreach({
  kills = 1_000,
  sends,
}: {
  kills?: number | undefined;
  sends: number;
}): Promise<void> {
  t.setTimeout(12 * 3_600_000);
  // A worker is started for each kill.
  await shareCompiled(t);
  const began = Date.now();
  await t.test('whatever is killed, nobody is sent an email twice, and nobody is forgotten', async (t) => {
    const progress = (line: string) => process.stderr.write(`${line}, ${Math.round((Date.now() - began) / 1_000)} s\n`);
    const outcome = await killWhileSending({
      ...{
        sends,
        kills,
        inboxes: Math.max(20, Math.ceil(sends / 400)),
        workers: 3,
        postgres_every: 10,
        random: Math.random,
        progress,
      },
    });
    const { worker, answer, postgres } = outcome.kills;
    process.stdout.write(
      `${worker + answer} kills of workers (${answer} between the data and its answer) and ${postgres} of Postgres over ${sends} emails: ${outcome.accepted} accepted, ${outcome.sent} sent, ${outcome.unknown} unknown, ${outcome.twice.length} twice, ${outcome.forgotten} forgotten, ${outcome.false_sent} wrongly sent\n`,
    );
    t.match(outcome, { twice: [], false_sent: 0, forgotten: 0, wrong: [] });
    t.equal(outcome.sent + outcome.unknown, sends);
  });
}
