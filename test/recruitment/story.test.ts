import t from 'tap';
import { catalogue } from '../../src/recruitment/events/catalogue.ts';
import { eventually, type Json, startRail, startReceiver } from '../harness.ts';
import { startSearxng } from './discovery/search_servers.ts';
import { base, blog, ended, scanBehind, scannedBrand, shop, startWeb } from './discovery/web.ts';

/** Texts that people typed, and texts of their pages: no event may hold any of them. */
const typed = {
  query: 'best sourdough ovens under 500',
  name: 'Jane Q. Baker',
  page_address: 'jane@janebakes.com',
  own_address: 'jane.private@gmail.com',
  note: 'Asks for 25 % on the phone.',
  reason: 'Met her at the fair in Lyon.',
  list: 'Spring favourites',
};

/** The events of a prospect's way from a search to Do not contact, in their order. */
const story = [
  ...['scan.failed', 'search.completed', 'scan.completed', 'search.failed'],
  ...['affiliate.added', 'email.revealed', 'email.revealed', 'affiliate.saved', 'affiliate.saved'],
  ...['affiliate.stage_changed', 'affiliate.assigned', 'note.added', 'affiliate.invited', 'affiliate.signed_up'],
  ...['affiliate.stage_changed', 'do_not_contact.added', 'do_not_contact.lifted', 'affiliate.hidden'],
];

const web = await startWeb();
web.sites.set('shop.test', { '/': shop });
web.sites.set('one.test', { '/': blog('Blog') });
web.sites.set('janebakes.com', { '/': `${blog('Jane')}<a href="mailto:${typed.page_address}">Mail</a>` });
const rail = await startRail({ own: { name_servers: web.name_servers } });

t.test('tells each step of discovery and of the pipeline as the catalogue has it', async (t) => {
  const caller = await rail.organization();
  const receiver = await startReceiver();
  await caller.post(`${base}/webhook_endpoints`, { url: receiver.url });

  const { id: brand_id } = await scannedBrand(caller, {
    website_url: web.at('shop.test'),
    competitors: ['rival.test'],
  });
  const search = (body: Json) => caller.post(`${base}/searches`, { brand_id, ...body });
  const listed = await search({ search_type: 'url_list', query: web.at('one.test') });
  await ended(caller, 'searches', listed.id);
  const scan = await scanBehind(caller, listed.id);
  const server = await startSearxng([]);
  await caller.request('PUT', `${base}/search_providers/searxng`, { credentials: { url: server.url } });
  server.fault = () => ({ status: 503, body: '' });
  const unanswered = await search({ search_type: 'keyword', query: typed.query, providers: ['searxng'] });
  await ended(caller, 'searches', unanswered.id);

  const url = web.at('janebakes.com');
  const { id } = await caller.post(`${base}/prospects`, { brand_id, channel: 'website', url, name: typed.name });
  const act = (action: string, body: Json = {}) => caller.post(`${base}/prospects/${id}/${action}`, body);
  await act('reveal');
  await eventually(async () => (await caller.get(`${base}/prospects/${id}/reveal`)).finished_at !== null, 'the reveal');
  await act('emails', { email: typed.own_address });
  await act('save');
  const list = await caller.post(`${base}/lists`, { brand_id, name: typed.list });
  await act('save', { list_id: list.id });
  await act('move', { stage: 'negotiating', reason: typed.reason });
  const { data: team } = await caller.get(`${base}/team`);
  await act('assign', { member_id: team[0].id });
  const note = await act('notes', { text: typed.note });
  await act('invite', { via: 'mark' });
  await act('signed_up');
  await act('do_not_contact', { reason: 'legal' });
  await act('do_not_contact/lift', { reason: 'mistake' });
  await act('hide', { reason: 'low_quality' });

  const received = await receiver.until(story.length);
  t.same(
    received.map(({ body }) => body.type),
    story,
  );
  for (const { body, raw } of received) {
    t.same(Object.keys(body), ['id', 'type', 'version', 'created_at', 'livemode', 'data']);
    t.match(body, { id: /^fev_/, version: 1, livemode: true });
    const { data, example } = catalogue[body.type as keyof typeof catalogue];
    t.same(Object.keys(body.data), Object.keys(example), body.type);
    t.same(data.parse(body.data), body.data, body.type);
    for (const text of ['@', ...Object.values(typed)]) t.notOk(raw.includes(text), `${body.type} without '${text}'`);
  }
  const dataOf = (type: string): Json[] =>
    received.filter(({ body }) => body.type === type).map(({ body }) => body.data);
  t.match(dataOf('search.completed'), [{ search_id: listed.id, brand_id, search_type: 'url_list', found: 1 }]);
  t.match(dataOf('search.failed'), [{ search_id: unanswered.id, credit_refunded: true }]);
  t.match(dataOf('scan.completed'), [{ scan_id: scan.id, trigger: 'search', found: 1 }]);
  t.match(dataOf('scan.failed'), [{ brand_id, trigger: 'first', error: 'No search provider answered.' }]);
  t.match(dataOf('affiliate.added'), [{ prospect_id: id, channel: 'website', source: 'manual' }]);
  t.match(dataOf('email.revealed'), [
    { source: 'page', addresses: 1 },
    { source: 'manual', addresses: 2 },
  ]);
  t.match(dataOf('affiliate.saved'), [{ key: 'janebakes.com', list_id: null }, { list_id: list.id }]);
  t.match(dataOf('affiliate.stage_changed'), [{ reason: 'manual' }, { from: 'negotiating', reason: 'signed_up' }]);
  t.match(dataOf('note.added'), [{ note_id: note.id, author_member_id: /^tm_/ }]);
});
