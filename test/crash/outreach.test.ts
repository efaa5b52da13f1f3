import t from 'tap';
import { killWhileSending } from './outreach_kills.ts';

t.test('whatever is killed, nobody is sent an email twice, and nobody is forgotten', async (t) => {
  const { kills, ...outcome } = await killWhileSending({
    ...{ sends: 120, kills: 4, inboxes: 6, workers: 2, postgres_every: 4, random: Math.random },
  });
  t.same(kills, { worker: 2, answer: 1, postgres: 1 });
  t.match(outcome, { twice: [], false_sent: 0, forgotten: 0, wrong: [] });
  t.equal(outcome.sent + outcome.unknown, 120);
  t.comment(`${outcome.accepted} accepted, ${outcome.sent} sent, ${outcome.unknown} unknown`);
});
