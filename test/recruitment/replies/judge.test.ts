import t from 'tap';
import { judgeReply } from '../../../src/recruitment/replies/judge.ts';

const cases: [string, string][] = [
  ['Sounds great, count me in!', 'positive'],
  ['What commission do you pay, and how long is the cookie?', 'question'],
  ['We are too busy right now, please write again in October.', 'not_now'],
  ['Thanks for the offer, but we do not accept advertising.', 'negative'],
  ['I left the company in June, please contact Ann Lee instead.', 'wrong_person'],
  ['Stop spamming me, you idiots, or you will hear from my lawyer!', 'angry'],
];

t.test('tells the kinds apart', async (t) => {
  for (const [text, kind] of cases) t.match(judgeReply(text), { kind }, text);
  t.match(judgeReply('Please remove me from your list.'), { unsubscribe: true });
});
