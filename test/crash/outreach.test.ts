import t from 'tap';
import { killWhileSending } from './outreach_kills.ts';

/** One kill of each kind, amid few emails: `npm run soak -- outreach` makes a thousand, amid 100,000. */
t.test('whatever is killed, nobody is sent an email twice, and nobody is forgotten', async (t) => {
  const { kills, ...outcome } = await killWhileSending({
    ...{ sends: 48, kills: 3, inboxes: 6, workers: 2, postgres_every: 3, random: Math.random },
  });
  t.same(kills, { worker: 1, answer: 1, postgres: 1 });
  t.match(outcome, { twice: [], false_sent: 0, forgotten: 0, wrong: [] });
  t.equal(outcome.sent + outcome.unknown, 48);
  t.comment(`${outcome.accepted} accepted, ${outcome.sent} sent, ${outcome.unknown} unknown`);
});
