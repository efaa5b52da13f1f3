import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { hasDovecot, startDovecot } from './dovecot.ts';
import { type Mailed, mail, openOutreach } from './mailed.ts';
import { answerTo, connectTo } from './read_inbox.ts';

const skip = hasDovecot() ? false : 'Dovecot is not installed: apt install dovecot-imapd';

t.test('reads the mail of a Dovecot: new, junk, large, and numbered anew', { skip }, async (t) => {
  const rail = await startRail();
  const dovecot = await startDovecot();
  const outreach = await openOutreach(rail);
  const user = 'grace';
  await connectTo(rail, outreach, dovecot, user);
  const sent: (Mailed & { email: string })[] = [];
  for (let count = 0; count < 4; count++) sent.push(await mail(rail, outreach));
  const [first, second, third, fourth] = sent as [Sent, Sent, Sent, Sent];
  const told = (): Json[] =>
    outreach.receiver.received.filter(({ body }) => body.type === 'reply.received').map(({ body }) => body.data);
  const isTold = ({ prospect_id }: Mailed) =>
    eventually(() => told().some((data) => data.prospect_id === prospect_id), 'the reply');

  const in_junk = answerTo(first, 'Yes, please send me the details.');
  await dovecot.deliver(user, in_junk, 'Junk');
  await dovecot.deliver(user, answerTo(second, `Yes, please send me the details.\n\n> ${'quoted '.repeat(200_000)}`));
  await isTold(second);
  await isTold(first);
  await dovecot.deliver(user, answerTo(third, 'We are not interested, thank you.'));
  await isTold(third);

  await dovecot.stop();
  await dovecot.renumber(user);
  await dovecot.deliver(user, in_junk);
  await dovecot.start();
  await dovecot.deliver(user, answerTo(fourth, 'What do you pay?'));
  await isTold(fourth);
  t.same(
    told()
      .map(({ prospect_id }) => prospect_id)
      .sort(),
    sent.map(({ prospect_id }) => prospect_id).sort(),
    'each is told once',
  );
  const texts = await rail.query<Json>(
    sql`select t.body_text from recruitment.message t where t.prospect_id = ${second.prospect_id} and t.direction = 'inbound'`,
  );
  t.match(texts, [{ body_text: /^Yes, please send me the details\./ }]);
});

type Sent = Mailed & { email: string };
