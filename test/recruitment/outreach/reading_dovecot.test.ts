import t from 'tap';
import { eventually, type Json, type Rail, sql, startRail, startReceiver } from '../../harness.ts';
import { all_but_scans } from '../event_types.ts';
import { hasDovecot, startDovecot } from './dovecot.ts';
import { hasExim, startExim } from './exim.ts';
import { type Mailed, mail, openOutreach } from './mailed.ts';
import { openSender, step, wake } from './outreach.ts';
import { answerTo, connectTo, password } from './read_inbox.ts';

const skip = hasDovecot() ? false : 'Dovecot is not installed: apt install dovecot-imapd';
const skip_exim = skip || (hasExim() ? false : 'Exim is not installed: apt install exim4-daemon-light');
let rail: Promise<Rail> | undefined;
const openRail = (): Promise<Rail> => {
  rail ??= startRail();
  return rail;
};

t.test('reads the mail of a Dovecot: new, junk, large, and numbered anew', { skip }, async (t) => {
  const rail = await openRail();
  const dovecot = await startDovecot();
  const outreach = await openOutreach(rail);
  const user = 'grace';
  await connectTo(rail, outreach, dovecot, user);
  const sent: (Mailed & { email: string })[] = [];
  for (let count = 0; count < 4; count++) sent.push(await mail(rail, outreach));
  const [first, second, third, fourth] = sent as [Sent, Sent, Sent, Sent];
  const told = (): Json[] =>
    outreach.receiver
      .events()
      .filter(({ type }) => type === 'reply.received')
      .map(({ data }) => data);
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

t.test('sends through an Exim, and reads the bounce that it writes from a Dovecot', { skip: skip_exim }, async (t) => {
  const rail = await openRail();
  const dovecot = await startDovecot();
  const exim = await startExim(await dovecot.openMaildir('grace'));
  const caller = await rail.organization();
  const receiver = await startReceiver();
  await caller.post('/recruitment/v1/webhook_endpoints', { url: receiver.url, event_types: all_but_scans });
  const names = ['ada', 'greylisted', 'unknown', 'returned'];
  const server = { host: 'localhost', security: 'tls', username: 'grace', password };
  const opened = await openSender(rail, caller.organization_id, {
    mailbox: { smtp: { ...server, port: exim.port }, imap: { ...server, port: dovecot.port } },
    ...{ prospects: names.length, address: (nth) => `${names[nth]}@blog${nth}.com`, inbox: { daily_limit: 500 } },
    steps: [step(), step({ delay_days: 3 })],
  });
  const states = async (): Promise<Record<string, string>> => {
    const rows = await rail.query<Json>(sql`
      select s.id, m.state as message, s.state as sequence from recruitment.sequence s
      left join recruitment.message m on m.sequence_id = s.id and m.direction = 'outbound'
      where s.organization_id = ${opened.organization_id}`);
    const by_id = new Map(rows.map(({ id, message, sequence }) => [id, `${message}, ${sequence}`]));
    return Object.fromEntries(names.map((name, nth) => [name, by_id.get(opened.sequence_ids[nth]) ?? '']));
  };
  const becomes = async (expected: Record<string, string>) => {
    let found = {};
    const are = async () => {
      found = await states();
      return JSON.stringify(found) === JSON.stringify(expected);
    };
    await eventually(are, 'all outcomes').catch(() => {});
    t.same(found, expected, await exim.log());
  };
  await wake(rail);
  const others = { unknown: 'failed, bounced', returned: 'bounced, bounced' };
  await becomes({ ada: 'sent, active', greylisted: 'planned, waiting', ...others });
  await exim.endGreylisting();
  await rail.query(
    sql`update recruitment.sequence set due_at = now() where organization_id = ${opened.organization_id} and state = 'waiting'`,
  );
  await rail.query(
    sql`update recruitment.inbox set waits_until = null, next_slot_at = null where organization_id = ${opened.organization_id}`,
  );
  await wake(rail);
  await becomes({ ada: 'sent, active', greylisted: 'sent, active', ...others });

  const bounced = opened.prospect_ids[3];
  const kept = await rail.query<Json>(
    sql`select t.purpose, t.needs_review from recruitment.message t where t.organization_id = ${opened.organization_id} and t.direction = 'inbound'`,
  );
  t.same(kept, [{ purpose: 'bounce', needs_review: false }]);
  const told = () =>
    receiver
      .events()
      .filter(({ data }) => data.prospect_id === bounced)
      .map(({ type }) => type);
  await eventually(() => told().includes('message.bounced'), 'the bounce to be told');
  t.same(told(), ['message.sent', 'affiliate.stage_changed', 'message.bounced']);
});
