/** Tests replies that are not certain, not proven or misread: they change nothing for good, and a person can take them back. */
import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { mail } from './mailed.ts';
import { answered, answerTo, newMessageId, openImapServer, openReadOutreach, type ReadOutreach } from './read_inbox.ts';

const rail = await startRail();
const server = await openImapServer();
const v1 = '/recruitment/v1';

const inbound = async ({ caller }: ReadOutreach, prospect_id: string, count = 1): Promise<Json[]> => {
  let found: Json[] = [];
  await eventually(async () => {
    found = (await caller.get(`${v1}/messages?prospect_id=${prospect_id}&direction=inbound`)).data;
    return found.length >= count;
  }, `${count} emails of ${prospect_id}`);
  return found;
};
const told = ({ receiver }: ReadOutreach, prospect_id: string): [string, Json][] =>
  receiver
    .events()
    .filter(({ type, data }) => data.prospect_id === prospect_id && !/^(affiliate\.added|email\.)/.test(type))
    .map(({ type, data }) => [type, data]);
const untilTold = async (outreach: ReadOutreach, prospect_id: string, count: number) => {
  await eventually(() => told(outreach, prospect_id).length >= count, `${count} events of ${prospect_id}`);
  return told(outreach, prospect_id);
};
const barsIn = ({ caller: { organization_id } }: ReadOutreach) =>
  rail.query<Json>(sql`
    select s.reason, s.lifted_at is not null as lifted from recruitment.suppression s
    where s.organization_id = ${organization_id} order by s.id`);
const isRead = async ({ inbox_id }: ReadOutreach) =>
  (
    await rail.query(
      sql`select from recruitment.inbox_reader r where r.inbox_id = ${inbox_id} and r.worker_id is not null`,
    )
  ).length > 0;
const answer = ({ caller }: ReadOutreach, prospect_id: string) =>
  caller.request('POST', `${v1}/prospects/${prospect_id}/reply`, { text: 'Thank you.' });
const reclassify = ({ caller }: ReadOutreach, id: string, reply_kind: string) =>
  caller.request('POST', `${v1}/messages/${id}/reclassify`, { reply_kind });
/** The header that the inbox's server writes on top of a mail. */
const found = (results: string) => ({ 'Authentication-Results': `mx.acme.example.com; ${results}` });
const loose = { 'In-Reply-To': undefined, Subject: 'Your offer' };

t.test('a person takes back an unsubscribe that was read from a text', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const to = await answered(rail, outreach, 'Please remove me from your mailing list.');
  await untilTold(outreach, to.prospect_id, 2);
  const [message] = await inbound(outreach, to.prospect_id);
  t.match(message, { purpose: 'unsubscribe', reply_kind: null, confidence: Number });
  t.match(await answer(outreach, to.prospect_id), { status: 409, body: { error: { message: /reclassify/ } } });
  for (const _ of [1, 2])
    t.match(await reclassify(outreach, message?.id, 'positive'), {
      status: 200,
      body: { purpose: 'reply', reply_kind: 'positive', confidence: 1, needs_review: false },
    });
  const { caller } = outreach;
  t.match(await caller.get(`${v1}/prospects/${to.prospect_id}?include[]=stats`), {
    ...{ stage: 'interested', unsubscribed_at: null, email_status: 'found', stats: { replies: 1 } },
  });
  t.match(await caller.get(`${v1}/sequences/${to.sequence_id}`), { state: 'replied' });
  t.match(await caller.get(`${v1}/threads/${to.thread_id}`), { reply_kind: 'positive', needs_review: false });
  t.match(await barsIn(outreach), [{ reason: 'unsubscribed', lifted: true }]);
  t.equal((await answer(outreach, to.prospect_id)).status, 202);
  const types = (await untilTold(outreach, to.prospect_id, 4)).map(([type, { to: stage }]) => [type, stage]);
  t.same(types, [
    ['affiliate.unsubscribed', undefined],
    ['affiliate.stage_changed', 'lost'],
    ['reply.received', undefined],
    ['affiliate.stage_changed', 'interested'],
  ]);
});

t.test('what a person, a link or a mailto says as well is not taken back', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const { caller } = outreach;
  const [marked, twice] = [await mail(rail, outreach), await mail(rail, outreach)];
  await caller.post(`${v1}/do_not_contact`, { kind: 'address', email: marked.email, reason: 'manual' });
  for (const to of [marked, twice])
    server.deliver(outreach.user, answerTo(to, 'Please remove me from your mailing list.'));
  const [of_marked] = await inbound(outreach, marked.prospect_id);
  const [of_twice] = await inbound(outreach, twice.prospect_id);
  server.deliver(outreach.user, answerTo(twice, '', { Subject: `unsubscribe ${twice.message_id}` }));
  const mails = await inbound(outreach, twice.prospect_id, 2);
  const by_mailto = mails.find(({ id }) => id !== of_twice?.id);
  t.match(by_mailto, { purpose: 'unsubscribe', confidence: null });
  t.match(await reclassify(outreach, by_mailto?.id, 'positive'), {
    ...{ status: 409, body: { error: { code: 'invalid_state_transition', message: /link, one-click or a mailto/ } } },
  });
  t.equal((await reclassify(outreach, of_marked?.id, 'question')).status, 200);
  t.equal((await reclassify(outreach, of_twice?.id, 'question')).status, 200);
  t.match(await barsIn(outreach), [
    { reason: 'manual', lifted: false },
    { reason: 'unsubscribed', lifted: false },
  ]);
  t.match(await caller.get(`${v1}/prospects/${marked.prospect_id}`), {
    ...{ unsubscribed_at: null, do_not_contact: { reason: 'manual' } },
  });
  t.match(await caller.get(`${v1}/prospects/${twice.prospect_id}`), { unsubscribed_at: /^20/ });
});

t.test('what others say after a misread text holds once that is taken back', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const { caller } = outreach;
  const [marked, twice] = [await mail(rail, outreach), await mail(rail, outreach)];
  const first: Json[] = [];
  for (const to of [marked, twice]) {
    server.deliver(outreach.user, answerTo(to, 'Please remove me from your mailing list.'));
    first.push(...(await inbound(outreach, to.prospect_id)));
  }
  for (const reason of ['manual', 'legal'])
    await caller.post(`${v1}/do_not_contact`, { kind: 'address', email: marked.email, reason });
  server.deliver(outreach.user, answerTo(twice, 'Unsubscribe me from these emails.'));
  const second = (await inbound(outreach, twice.prospect_id, 2)).find(({ id }) => id !== first[1]?.id);
  for (const message of first) t.equal((await reclassify(outreach, message.id, 'question')).status, 200);
  t.match(await barsIn(outreach), [
    { reason: 'legal', lifted: false },
    { reason: 'unsubscribed', lifted: false },
  ]);
  t.match(await caller.get(`${v1}/prospects/${marked.prospect_id}`), { do_not_contact: { reason: 'legal' } });
  t.match(await caller.get(`${v1}/prospects/${twice.prospect_id}`), { unsubscribed_at: /^20/ });
  t.equal((await reclassify(outreach, second?.id, 'question')).status, 200);
  t.match((await barsIn(outreach))[1], { reason: 'unsubscribed', lifted: true });
});

t.test('a person takes back anger, and an automatic reply', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const words = 'You idiots, stop sending me this fucking spam! Remove me from your list or I will sue you!';
  const angry = await answered(rail, outreach, words);
  const away = await answered(rail, outreach, 'I am away.', { 'Auto-Submitted': 'auto-replied' });
  await untilTold(outreach, angry.prospect_id, 3);
  const [of_angry] = await inbound(outreach, angry.prospect_id);
  const [of_away] = await inbound(outreach, away.prospect_id);
  t.match(of_away, { purpose: 'auto_reply', auto_reply_kind: 'absence' });
  for (const message of [of_angry, of_away])
    t.match(await reclassify(outreach, message?.id, 'question'), { body: { reply_kind: 'question' } });
  const { caller } = outreach;
  t.match(await caller.get(`${v1}/prospects/${angry.prospect_id}`), {
    ...{ stage: 'interested', do_not_contact: null, unsubscribed_at: null },
  });
  t.match(await caller.get(`${v1}/sequences/${away.sequence_id}`), { state: 'replied' });
  t.match((await untilTold(outreach, angry.prospect_id, 5)).slice(3), [
    ['do_not_contact.lifted', { reason: 'mistake' }],
    ['affiliate.stage_changed', { to: 'interested' }],
  ]);
});

t.test('a text that only may refuse, or ask to be taken off, decides nothing', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const friendly = [
    'Please stop by our office to discuss',
    'Shut up and take my money :D',
    'Please remove the NDA clause and we have a deal',
    'I do not want to unsubscribe, I want to know more',
    'Yes, please send the details.\n\nMia\n\nIf you do not want to receive our emails any more, unsubscribe here: https://writer.example.net/u',
  ];
  const foreign = [
    '興味があります。詳細を送ってください。',
    'Evet, ilgileniyorum. Detayları gönderin.',
    '네, 관심 있습니다. 자세한 내용을 보내 주세요.',
    'כן, אני מעוניין. אנא שלחו פרטים.',
  ];
  const wishes = [
    'Отпишите меня, пожалуйста.',
    'Bitte löschen Sie mich nicht aus dem Verteiler. Ich möchte gerne Partner werden.',
    'I accidentally unsubscribed. Please add me back.',
  ];
  const disclaimer =
    'If you are not the intended recipient, please delete this message and remove it from your system.';
  const automatic = await answered(rail, outreach, disclaimer);
  t.match(await inbound(outreach, automatic.prospect_id), [{ purpose: 'auto_reply', needs_review: true }]);
  t.match(await outreach.caller.get(`${v1}/prospects/${automatic.prospect_id}`), { stage: 'contacted' });
  const sent = [];
  for (const text of [...friendly, ...foreign, ...wishes])
    sent.push({ text, ...(await answered(rail, outreach, text)) });
  for (const { text, prospect_id } of sent) {
    const [message] = await inbound(outreach, prospect_id);
    t.equal(message?.purpose, 'reply', text);
    if (text.includes('unsubscribe here')) t.match(message, { reply_kind: 'positive', needs_review: false }, text);
    if (wishes.includes(text)) {
      t.match(message, { reply_kind: 'question', needs_review: true }, text);
      t.match(await outreach.caller.get(`${v1}/prospects/${prospect_id}`), { stage: 'contacted' }, text);
    }
    if (!foreign.includes(text)) continue;
    t.match(message, { reply_kind: 'question', needs_review: true }, text);
    t.match(await outreach.caller.get(`${v1}/prospects/${prospect_id}`), { stage: 'replied' }, text);
  }
  t.same(await barsIn(outreach), []);
});

t.test('what the server of the inbox found to be forged is kept for review, and changes nothing', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const { caller, user } = outreach;
  const forged = { ...loose, ...found('spf=fail smtp.mailfrom=elsewhere.example; dmarc=fail header.from=x.com') };
  const texts: [text: string, fields?: Json][] = [
    ['Yes, please send me the details.'],
    ['Please remove me from your mailing list.'],
    ['You idiots, stop sending me this fucking spam! Remove me from your list or I will sue you!'],
    ['', { Subject: 'unsubscribe' }],
    ['I am out of the office until 20 November 2027.', { 'Auto-Submitted': 'auto-replied' }],
  ];
  for (const [text, fields = {}] of texts) {
    const to = await mail(rail, outreach);
    server.deliver(user, answerTo(to, text, { ...forged, ...fields }));
    const [message] = await inbound(outreach, to.prospect_id);
    t.match(message, { needs_review: true }, text);
    t.match(await caller.get(`${v1}/prospects/${to.prospect_id}`), { stage: 'contacted', unsubscribed_at: null });
    t.match(await caller.get(`${v1}/threads/${to.thread_id}`), { needs_review: true });
    const { open, days } = (
      await rail.query<Json>(sql`
        select s.open, extract(day from s.paused_until - now())::int as days from recruitment.sequence s where s.id = ${to.sequence_id}`)
    )[0] as Json;
    t.equal(open, true, text);
    t.ok(days === null || days <= 5, text);
    t.same(told(outreach, to.prospect_id), [], text);
    if (message?.purpose !== 'reply') continue;
    for (const _ of [1, 2]) await reclassify(outreach, message.id, 'question');
    t.match(await caller.get(`${v1}/sequences/${to.sequence_id}`), { state: 'replied' }, 'a person decides');
    await reclassify(outreach, message.id, 'positive');
    t.match(await caller.get(`${v1}/prospects/${to.prospect_id}?include[]=stats`), {
      ...{ stage: 'interested', stats: { replies: 1 } },
    });
    const types = (await untilTold(outreach, to.prospect_id, 2)).map(([type]) => type);
    t.equal(types.filter((type) => type === 'reply.received').length, 1, 'told once');
  }
  t.same(await barsIn(outreach), []);
});

t.test('an answer to our email that fails DMARC is kept for review, unless a mailto names the email', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const { caller } = outreach;
  const failed = found('dmarc=fail header.from=x.com');
  const texts = [
    'Yes, please send me the details.',
    'Please remove me from your mailing list.',
    'Fuck off, you spammers!',
  ];
  for (const text of texts) {
    const { prospect_id, sequence_id } = await answered(rail, outreach, text, failed);
    t.match(await inbound(outreach, prospect_id), [{ purpose: 'reply', reply_kind: 'question', needs_review: true }]);
    t.match(await caller.get(`${v1}/prospects/${prospect_id}`), { stage: 'contacted', unsubscribed_at: null }, text);
    t.match(await caller.get(`${v1}/sequences/${sequence_id}`), { pause_causes: ['auto_reply'] });
    t.same(told(outreach, prospect_id), [], text);
  }
  const away = await answered(rail, outreach, 'I am away.', { ...failed, 'Auto-Submitted': 'auto-replied' });
  t.match(await inbound(outreach, away.prospect_id), [{ purpose: 'auto_reply', needs_review: false }]);
  t.same(await barsIn(outreach), []);
  const to = await mail(rail, outreach);
  server.deliver(outreach.user, answerTo(to, '', { ...failed, Subject: `unsubscribe ${to.message_id}` }));
  t.match(await inbound(outreach, to.prospect_id), [{ purpose: 'unsubscribe', needs_review: false }]);
  t.match(await barsIn(outreach), [{ reason: 'unsubscribed', lifted: false }]);
});

t.test('whoever answers our email bars no other address by naming it as the sender', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const { caller, user } = outreach;
  const other = await mail(rail, outreach);
  for (const subject of ['Re: Offer', 'unsubscribe']) {
    const to = await mail(rail, outreach);
    const fields = { Subject: subject === 'unsubscribe' ? `${subject} ${to.message_id}` : subject };
    server.deliver(user, answerTo(to, 'Please remove me from your mailing list.', { ...fields, From: other.email }));
    t.match(await inbound(outreach, to.prospect_id), [{ purpose: 'unsubscribe' }]);
    t.match(await caller.get(`${v1}/prospects/${to.prospect_id}`), { unsubscribed_at: /^20/ });
  }
  t.match(await caller.get(`${v1}/prospects/${other.prospect_id}`), { stage: 'contacted', unsubscribed_at: null });
  t.match(await caller.get(`${v1}/sequences/${other.sequence_id}`), { state: 'active' });
  t.equal((await barsIn(outreach)).length, 2, 'the addresses that were written to');

  const firm = await mail(rail, outreach);
  const From = `colleague@${firm.email.split('@')[1]}`;
  server.deliver(user, answerTo(firm, 'Please remove us from your mailing list.', { From }));
  await inbound(outreach, firm.prospect_id);
  t.equal((await barsIn(outreach)).length, 4, 'a colleague speaks for both');
});

t.test(
  'an unproven wish to be taken off, or anger, is for a person to look at, and a proven one takes effect',
  async (t) => {
    const outreach = await openReadOutreach(rail, server);
    const { caller, user } = outreach;
    const passes = (email: string) => {
      const domain = email.split('@')[1];
      return found(`dkim=pass header.d=${domain}; dmarc=pass header.from=${domain}`);
    };
    const mails: [text: string, fields: Json][] = [
      ['', { Subject: 'unsubscribe' }],
      ['Unsubscribe', {}],
      ['Fuck off, you spammers!', {}],
    ];
    // Without results; and with those that nothing says are the own server's: a sender may have planted them.
    for (const is_planted of [false, true])
      for (const [text, fields] of mails) {
        const to = await mail(rail, outreach);
        const results = is_planted ? passes(to.email) : {};
        server.deliver(user, answerTo(to, text, { ...loose, ...fields, ...results, 'Message-ID': newMessageId() }));
        t.match(await inbound(outreach, to.prospect_id), [{ purpose: 'reply', needs_review: true }], text);
        t.match(await caller.get(`${v1}/prospects/${to.prospect_id}`), {
          ...{ stage: 'contacted', unsubscribed_at: null, do_not_contact: null },
        });
      }
    t.same(await barsIn(outreach), []);
    await caller.patch(`${v1}/inboxes/${outreach.inbox_id}`, { authserv_id: 'mx.acme.example.com' });
    // Not sooner: a reader that is taken again must not go on with the setting before.
    await eventually(() => isRead(outreach), 'a worker that reads the inbox again');
    const proven = await mail(rail, outreach);
    server.deliver(user, answerTo(proven, '', { ...loose, Subject: 'unsubscribe', ...passes(proven.email) }));
    const [of_proven] = await inbound(outreach, proven.prospect_id);
    t.match(of_proven, { purpose: 'unsubscribe', needs_review: false });
    t.equal((await reclassify(outreach, of_proven?.id, 'question')).status, 409);
    t.match(await barsIn(outreach), [{ reason: 'unsubscribed', lifted: false }]);
  },
);

t.test('an invitation and a reaction ask for review, and pause follow-ups', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const invitation = { 'Content-Type': 'text/calendar; method=REQUEST; charset=utf-8' };
  const event = 'BEGIN:VCALENDAR\nVERSION:2.0\nMETHOD:REQUEST\nBEGIN:VEVENT\nSUMMARY:Call\nEND:VEVENT\nEND:VCALENDAR';
  const invited = await answered(rail, outreach, event, invitation);
  const liked = await answered(rail, outreach, '👍 Ada reacted via Gmail');
  for (const [to, auto_reply_kind] of [
    [invited, 'invitation'],
    [liked, 'reaction'],
  ] as const) {
    t.match(await inbound(outreach, to.prospect_id), [{ purpose: 'auto_reply', auto_reply_kind, needs_review: true }]);
    t.match(await outreach.caller.get(`${v1}/sequences/${to.sequence_id}`), { pause_causes: ['auto_reply'] });
    t.same(told(outreach, to.prospect_id), []);
  }
});
