/** Every type of event of the companion by real behaviour, from a brand to the first commission: the servers and people of the demo answer. */
import t from 'tap';
import { startDemoWorld } from '../../src/demo/demo_world.ts';
import { demo_sites } from '../../src/demo/sites.ts';
import { catalogue as program_catalogue } from '../../src/program/events/catalogue.ts';
import { catalogue } from '../../src/recruitment/events/catalogue.ts';
import { type Caller, eventually, type Json, type Received, startRail, startReceiver } from '../harness.ts';
import { startSearxng } from './discovery/search_servers.ts';

const v1 = '/recruitment/v1';
const world = await startDemoWorld({ search_credentials: {} } as never);
t.teardown(() => world.close());
const { name_servers, search_credentials, visit_interval_ms, is_demo } = world.services;
const rail = await startRail({ own: { name_servers, search_credentials, visit_interval_ms, is_demo } });
// The links in emails lead here.
rail.services.base_url = rail.address;

const { inbox_email, mail_username: username, mail_password: password, website_url } = world.fields;
const server = { host: 'localhost', security: 'tls', username, password };
const inbox = (email: string | undefined) => ({
  ...{ email, from_name: 'Grace', min_gap_s: 0, max_gap_s: 0, ramp: null },
  smtp: { ...server, port: Number(world.fields.smtp_port) },
  imap: { ...server, port: Number(world.fields.imap_port) },
});
const always = { timezone: 'UTC', days: [1, 2, 3, 4, 5, 6, 7], from: '00:00', to: '24:00' };
const first = { delay_days: 0, subject: 'Our program and {{ prospect.name }}', body_text: 'Hello,\n\nwill you join?' };
const second = { delay_days: 3, body_text: 'Hello again.' };
const sender = {
  ...{ sender_company: 'Acme Inc.', postal_address: '1 Main Street', privacy_url: 'https://acme.example.com/privacy' },
};

class Story {
  readonly caller: Caller;
  readonly received: Received[];
  constructor(caller: Caller, received: Received[]) {
    this.caller = caller;
    this.received = received;
  }
  post = (path: string, body: Json = {}): Promise<Json> => this.caller.post(`${v1}/${path}`, body);
  get = (path: string): Promise<Json> => this.caller.get(`${v1}/${path}`);
  /** The events of a type so far, about an object where one is given. */
  events = (type: string, about: Json = {}): Json[] =>
    this.received
      .map(({ body }) => body)
      .filter(
        ({ type: told, data }) => told === type && Object.entries(about).every(([name, id]) => data[name] === id),
      );
  until = async (type: string, about: Json = {}, count = 1): Promise<void> => {
    await eventually(() => this.events(type, about).length >= count, `${type} ${JSON.stringify(about)}`);
  };
}

t.test(
  'all 32 types are told, in the order in which they happen, and nothing is in them that is private',
  async (t) => {
    const caller = await rail.organization();
    const receiver = await startReceiver();
    await caller.post(`${v1}/webhook_endpoints`, { url: receiver.url });
    const story = new Story(caller, receiver.received);
    const program = await caller.post('/v1/programs', {
      ...{ name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' },
    });

    // Discovery: a scan finds sites, a reveal the address of who writes one.
    const brand = await story.post('brands', {
      ...{ name: 'Acme', website_url, program_id: program.id, keywords: ['espresso'], ...sender },
    });
    await story.until('scan.completed', { brand_id: brand.id, trigger: 'first' });
    const { data: found } = await story.get(`prospects?brand_id=${brand.id}&limit=100`);
    t.equal(found.length, demo_sites.length);
    const ids: Record<string, string> = Object.fromEntries(
      demo_sites.map(({ host, person }) => [person.name, found.find(({ key }: Json) => key === host).id]),
    );
    const { Lena, Tom, Mia, Noor, Ida, Sam, Eva, Ben } = ids as Record<string, string>;
    await Promise.all(Object.values(ids).map((id) => story.post(`prospects/${id}/reveal`)));
    for (const prospect_id of Object.values(ids)) await story.until('email.revealed', { prospect_id });
    const unreachable = await story.post('brands', { name: 'Gone', website_url: 'http://gone.acme-rail-demo.com/' });
    await story.until('scan.failed', { brand_id: unreachable.id });
    await story.post('searches', { brand_id: brand.id, search_type: 'keyword', query: 'slow coffee' });
    await story.until('search.completed', { brand_id: brand.id });
    const engine = await startSearxng([]);
    await caller.request('PUT', `${v1}/search_providers/searxng`, { credentials: { url: engine.url } });
    engine.fault = () => ({ status: 503, body: '' });
    await story.post('searches', {
      ...{ brand_id: brand.id, search_type: 'keyword', query: 'nothing', providers: ['searxng'] },
    });
    await story.until('search.failed');

    // The pipeline, by hand.
    const nobody = await story.post('prospects', { brand_id: brand.id, channel: 'x', key: 'silent_espresso' });
    await story.post(`prospects/${nobody.id}/save`);
    await story.post(`prospects/${nobody.id}/notes`, { text: 'Ask her by phone.' });
    const { data: team } = await story.get('team');
    await story.post(`prospects/${nobody.id}/assign`, { member_id: team[0].id });
    const other = await story.post('prospects', { brand_id: brand.id, channel: 'x', key: 'other_espresso' });
    await story.post(`prospects/${other.id}/hide`, { reason: 'low_quality' });
    await story.post(`prospects/${other.id}/do_not_contact`);
    await story.post(`prospects/${other.id}/do_not_contact/lift`, { reason: 'mistake' });
    const friend = await story.post('prospects', {
      ...{ brand_id: brand.id, channel: 'x', key: 'a_friend', email: 'friend@friend-rail-demo.com' },
    });
    await story.post(`prospects/${friend.id}/invite`, { via: 'mark' });
    await caller.post('/v1/partners', { program_id: program.id, email: 'friend@friend-rail-demo.com' });
    await rail.tick('recruitment/follow_programs', new Date().toISOString());

    // Outreach: everybody answers as they do.
    const { id: inbox_id } = await story.post('inboxes', inbox(inbox_email));
    const open = async (name: string, prospect_ids: string[], given: Json) => {
      const { id } = await story.post('campaigns', {
        ...{ brand_id: brand.id, name, inbox_ids: [inbox_id], schedule: always, bounce_pause_bps: 10_000, ...given },
      });
      await story.post(`campaigns/${id}/prospects`, { prospect_ids });
      await story.post(`campaigns/${id}/launch`);
      return id as string;
    };
    const campaign_id = await open('Reviewers', [Lena, Tom, Mia, Noor, Ida, Sam, Eva, nobody.id] as string[], {
      steps: [first, second],
    });
    await story.until('campaign.launched', { campaign_id });
    await story.until('campaign.send_failed', { prospect_id: nobody.id });
    await story.until('message.failed', { prospect_id: Eva });
    await story.until('message.bounced', { prospect_id: Ida });
    await story.until('affiliate.unsubscribed', { prospect_id: Sam });
    for (const prospect_id of [Lena, Tom, Noor]) await story.until('reply.received', { prospect_id });
    await eventually(
      async () => (await story.get(`sequences?prospect_id=${Mia}`)).data[0].pause_causes.includes('auto_reply'),
      'the automatic reply to be read',
    );
    const finished = await open('Offices', [Ben as string], { steps: [first], reply_wait_days: 0 });
    await story.until('message.sent', { prospect_id: Ben });
    await rail.tick('recruitment/send_due', new Date().toISOString());
    await story.until('sequence.completed', { prospect_id: Ben });
    await story.until('campaign.finished', { campaign_id: finished });
    const { id: spare_id } = await story.post('inboxes', inbox('team@acme-rail-demo.com'));
    await story.post(`campaigns/${campaign_id}/pause`);
    await caller.patch(`${v1}/campaigns/${campaign_id}`, { inbox_ids: [inbox_id, spare_id] });
    await story.post(`campaigns/${campaign_id}/resume`);
    await story.post(`inboxes/${spare_id}/disconnect`);
    await story.post(`campaigns/${campaign_id}/stop`);

    // A deal, and what it earns.
    const deal = await story.post('deals', {
      ...{ prospect_id: Lena, program_id: program.id },
      terms: { rate_type: 'percent', rate_value: 2_500, currency: 'USD' },
    });
    await story.post(`deals/${deal.id}/agree`, { agreed_by: 'prospect' });
    await story.post(`deals/${deal.id}/activate`);
    await story.until('affiliate.activated', { deal_id: deal.id });
    const { partner_id } = await story.get(`deals/${deal.id}`);
    const sale = await caller.post('/v1/sales', {
      ...{ program_id: program.id, partner_id, amount_minor: 9_900, currency: 'USD', external_charge_id: 'ch_0001' },
      customer: { email: 'buyer@customer.example.com' },
    });
    t.match(sale.commissions, [{ amount_minor: 2_475, partner_id }]);
    await story.until('affiliate.signed_up', { prospect_id: friend.id });
    // The last event about each of them.
    await story.until('affiliate.stage_changed', { prospect_id: Lena }, 5);
    await story.until('affiliate.stage_changed', { prospect_id: friend.id });

    t.test('in the order in which they happened', (t) => {
      const types = (prospect_id: string | undefined) =>
        story.received.filter(({ body }) => body.data.prospect_id === prospect_id).map(({ body }) => body.type);
      const begun = ['email.revealed', 'message.sent', 'affiliate.stage_changed'];
      t.same(types(Lena), [
        ...[...begun, 'reply.received', 'affiliate.stage_changed'],
        ...['affiliate.stage_changed', 'deal.agreed', 'affiliate.stage_changed', 'affiliate.activated'],
        'affiliate.stage_changed',
      ]);
      t.same(types(Noor), [...begun, 'reply.received', 'affiliate.stage_changed']);
      t.same(types(Sam), [...begun, 'affiliate.unsubscribed', 'affiliate.stage_changed']);
      t.same(types(Ida), [...begun, 'message.bounced']);
      t.same(types(Eva), ['email.revealed', 'message.failed']);
      t.same(types(Ben), [...begun, 'sequence.completed']);
      t.same(types(friend.id).slice(-3), ['affiliate.invited', 'affiliate.signed_up', 'affiliate.stage_changed']);
      t.end();
    });

    t.test('as the replies say', (t) => {
      const kinds = [Lena, Tom, Noor].map(
        (prospect_id) => story.events('reply.received', { prospect_id })[0]?.data.reply_kind,
      );
      t.same(kinds, ['positive', 'question', 'negative']);
      t.end();
    });

    t.test('each of the 32 types, by the schema of the catalogue', (t) => {
      const told = new Set(story.received.map(({ body }) => body.type));
      t.same(
        Object.keys(catalogue).filter((type) => !told.has(type)),
        [],
      );
      t.equal(Object.keys(catalogue).length + Object.keys(program_catalogue).length, 73, 'with those of the program');
      for (const { body } of story.received) {
        t.ok(catalogue[body.type as keyof typeof catalogue].data.safeParse(body.data).success, body.type);
      }
      t.end();
    });

    t.test('without an address, a text or the terms', (t) => {
      const raw = story.received.map(({ raw: text }) => text).join('\n');
      for (const text of [
        /[a-z]+@[a-z-]+\.com/i,
        /I would love to join/,
        /by phone/,
        /will you join/,
        /slow coffee/,
        /2500/,
      ])
        t.notMatch(raw, text);
      t.end();
    });
  },
);
