import type { Sql } from 'sql-template-tag';
import t from 'tap';
import { z } from 'zod';
import type { Operation } from '../src/core/resource/operation.ts';
import { newId } from '../src/core/values/id.ts';
import { operations } from '../src/operations.ts';
import { type Answer, type Caller, eventually, type Json, type Rail, sql } from './harness.ts';
import { startServer } from './program/payouts/rails/attempt.ts';
import { deliver } from './program/payouts/rails/provider_server.ts';
import { StripeAccount } from './program/processors/stripe_account.ts';
import { refund } from './program/processors/stripe_objects.ts';
import { type SearchServer, startSearxng } from './recruitment/discovery/search_servers.ts';
import { type Mailbox, startMailbox } from './recruitment/mailbox.ts';
import { type Mailed, mail, openCampaign, replyTo } from './recruitment/outreach/mailed.ts';

/**
 * Valid requests for operations, derived from what the operations say of themselves, so that a new operation is covered by being
 * in the list. Only what cannot be derived stands in `special`.
 */
export interface Sample {
  path: string;
  query: Record<string, string>;
  body: Json | undefined;
}

/** Values that replace those that would be made up: a path, or fields by name. */
export interface Given {
  path?: string;
  query?: Record<string, string>;
  body?: Json;
}

/** Makes the parts of an operation's sample that its schemas do not say: a state, or fields that go together. */
const special: Record<string, (world: World, given: Json) => Promise<Json>> = {
  // A key of no user, with the one scope that a key needs which changes keys: every such key may change it.
  'api_keys.create': async () => ({ scopes: ['keys:write'], for_user: false }),
  'links.create': async () => ({ value: fresh('link') }),
  'clicks.create': async (world) => ({ value: (await world.fixture('links')).value }),
  'publishable_keys.create': async () => ({ allowed_origins: ['https://acme.example.com'] }),
  'customers.create': async (world, given) =>
    given.partner_id === undefined ? { click_id: (await world.make('clicks')).id } : {},
  'sales.create': async (world, given) =>
    ['partner_id', 'click_id', 'customer_id'].some((claim) => given[claim] !== undefined)
      ? {}
      : { customer_id: (await world.fixture('customers')).id },
  'sale_claims.create': async (_, given) => ({
    ...((given.external_charge_id ?? given.email) ? {} : { external_charge_id: fresh('order') }),
    ...(given.coupon_code ? { occurred_at: fresh_time() } : {}),
  }),
  'payout_batches.take_in_report': async ({ report }) => ({ document: report }),
  'prospects.create': async () => ({ key: `${fresh('site')}.com` }),
  'prospects.import': async (world, given) => ({
    document: `url\nhttps://${fresh('imported')}.com/`,
    ...(given.brand_id === undefined ? { brand_id: (await world.fixture('recruitment_brands')).id } : {}),
  }),
  'prospects.assign': async () => ({ member_id: null }),
  'deals.create': async (world, given) =>
    given.prospect_id === undefined ? { prospect_id: (await world.make('recruitment_prospects')).id } : {},
  'do_not_contact.create': async (_, given) =>
    given.prospect_id === undefined ? { email: `${fresh('barred')}@example.com` } : { kind: 'prospect' },
  'inboxes.create': async (world) => {
    const { smtp, imap } = await world.mailbox();
    return { smtp, imap };
  },
  'campaigns.test': async (world, given) =>
    given.member_id === undefined ? { email: (await world.caller.get('/recruitment/v1/team')).data[0].email } : {},
  'campaigns.preview': async (world, given) =>
    given.prospect_id === undefined ? { prospect_id: (await world.fixture('recruitment_emails')).prospect_id } : {},
  'campaigns.add_prospects': async (world, given) =>
    given.prospect_ids === undefined ? { list_id: (await world.fixture('recruitment_lists')).id } : {},
  'partners.put_payout_method': async () => payout_method,
  'rails.put': async () => debtor,
  'processors.put': async (world) => processorOf(world),
  'search_providers.put': (world) => searchCredentials(world),
  'searches.create': async () => ({ query: 'sourdough' }),
  'webhook_endpoints.replay': async (_, given) =>
    given.from ? { to: new Date(Date.parse(given.from) + 60_000).toISOString() } : { failed_since: fresh_time() },
};

/** The value of a field that its schema does not make up: by operation and field. */
const special_value: Record<string, (world: World) => Promise<unknown>> = {
  'api_keys.update: scopes': async () => ['keys:write'],
  'api_keys.update: ip_ranges': async () => ['127.0.0.0/8'],
  'api_keys.update: expires_at': async () => new Date(Date.now() + 3_600_000).toISOString(),
  'publishable_keys.update: allowed_origins': async () => ['https://acme.example.com'],
  // A key of a member makes no owners.
  'users.update: role': async () => 'member',
  'inboxes.update: smtp': async (world) => (await world.mailbox()).smtp,
  'campaigns.update: steps': async () => [{ subject: 'Our program', body_text: 'Hello' }],
  'campaigns.update: schedule': async () => ({ timezone: 'UTC', days: [1], from: '09:00', to: '17:00' }),
  'inboxes.update: imap': async (world) => (await world.mailbox()).imap,
};

/** Queries of operations beyond what their schemas say. */
const window = { from: '2026-01-01T00:00:00Z', to: '2026-02-01T00:00:00Z' };
const special_query: Record<string, Record<string, string>> = { 'reports.run': window, 'reports.get': window };

/** A path in which one of several words is asked for. */
function chosen(path: string, params: z.ZodType): string {
  return path.replace(/\{(\w+)\}/, (_, name: string) => {
    const [word] = fieldsOf(params).properties[name]?.enum ?? [];
    if (typeof word !== 'string') throw untaught(`fill in the path ${path}`);
    return word;
  });
}

/** Returns a bank's report of a payment that it has settled. */
const settledReport = (message_id: string, key: string): string =>
  `<Document><CstmrPmtStsRpt><OrgnlGrpInfAndSts><OrgnlMsgId>${message_id}</OrgnlMsgId></OrgnlGrpInfAndSts><OrgnlPmtInfAndSts>
<TxInfAndSts><OrgnlEndToEndId>${key}</OrgnlEndToEndId><TxSts>ACSC</TxSts></TxInfAndSts></OrgnlPmtInfAndSts></CstmrPmtStsRpt></Document>`;

const fresh_time = (): string => new Date(Date.now() - 60_000).toISOString();

const payout_method = {
  method: 'bank_transfer',
  details: { account_holder: 'Ada Lovelace', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' },
};

const wallet = {
  method: 'crypto',
  details: { address: 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq', network: 'bitcoin' },
};

/** The rail of every sample: nobody is asked about the account of a bank file. Providers are tried in the tests of their own. */
const sample_rail = 'bank_transfer';
const debtor = {
  mode: 'live',
  credentials: { name: 'Acme GmbH', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' },
};

/** An object in a state that an operation needs, where a newly made one will not do. By operation; gives its id. */
const prepared: Record<string, (world: World) => Promise<string>> = {
  'partners.get_payout_method': async (world) => {
    const { id } = await world.make('partners');
    await world.caller.request('PUT', `/v1/partners/${id}/payout_method`, payout_method);
    return id;
  },
  'commissions.approve': async (world) => {
    await world.fixture('rules');
    return (await world.make('sales')).commissions[0].id;
  },
  'sale_claims.resolve': async (world) => {
    const { external_charge_id, program_id } = await world.make('sales');
    const { id: partner_id } = await world.caller.post('/v1/partners', {
      program_id,
      email: `${fresh('claims')}@example.com`,
    });
    return (await world.caller.post('/v1/sale_claims', { program_id, partner_id, external_charge_id })).id;
  },
  'commissions.release': async (world) => {
    await world.fixture('rules');
    const { id } = (await world.make('sales')).commissions[0];
    await world.caller.post(`/v1/commissions/${id}/hold`);
    return id;
  },
  'payout_batches.approve': async (world) => (await batchOfOne(world, { payout_approval_required: true })).id,
  'payout_batches.delete': async (world) => (await batchOfOne(world)).id,
  'payout_batches.send': async (world) => (await payoutToWallet(world)).batch_id,
  'payout_batches.retry': async (world) => (await failedPayout(world)).batch_id,
  'payout_batches.mark_paid': async (world) => {
    const { id, batch_id } = await payoutToWallet(world);
    await world.caller.post(`/v1/payouts/${id}/send`);
    return batch_id;
  },
  'payout_batches.take_in_report': async (world) => {
    const { id, batch_id } = await payoutToWallet(world);
    await world.caller.post(`/v1/payouts/${id}/send`);
    const { files } = await world.caller.get(`/v1/payout_batches/${batch_id}`);
    world.report = settledReport(files[0].message_id, `${id}-1`);
    return batch_id;
  },
  'payout_batches.export': async (world) => {
    const { id, batch_id } = await payoutToWallet(world);
    await world.caller.post(`/v1/payouts/${id}/send`);
    return batch_id;
  },
  'payouts.send': async (world) => (await payoutToWallet(world)).id,
  async 'payouts.mark_returned'(world) {
    const { id } = await payoutToWallet(world);
    await world.caller.post(`/v1/payouts/${id}/mark_paid`);
    return id;
  },
  async 'payouts.mark_failed'(world) {
    const { id } = await payoutToWallet(world);
    await world.caller.post(`/v1/payouts/${id}/send`);
    return id;
  },
  'payouts.retry': async (world) => (await failedPayout(world)).id,
  async 'prospects.signed_up'(world) {
    const { id } = await world.make('recruitment_prospects');
    await world.caller.post(`/recruitment/v1/prospects/${id}/invite`, { via: 'mark' });
    return id;
  },
  async 'deals.activate'(world) {
    const { id } = await world.make('recruitment_deals');
    await world.caller.post(`/recruitment/v1/deals/${id}/agree`);
    return id;
  },
  'campaigns.launch': async (world) => (await launchable(world)).id,
  'campaigns.preview': async (world) => (await launchable(world)).id,
  'campaigns.test': async (world) => (await launchable(world)).id,
  'campaigns.pause': sendingCampaign,
  'campaigns.resume': (world) =>
    campaignIn(world, sql`state = 'paused', pause_causes = '{user,inbox}', paused_at = now()`),
  'emails.list': async (world) => (await world.fixture('recruitment_emails')).prospect_id,
  'prospects.reply': async (world) => (await mailedBy(world)).mailed.prospect_id,
  async 'messages.reclassify'(world) {
    const { sending, mailed } = await mailedBy(world);
    return replyTo(world.outside(), sending, mailed, mailed.email);
  },
  async 'messages.resend'(world) {
    const { mailed } = await mailedBy(world);
    await world.outside().query(sql`
      update recruitment.message m set state = 'unknown', sent_at = null, claimed_at = now(), email_address_id = a.id
      from recruitment.email_address a
      where m.id = ${mailed.message_id} and a.prospect_id = m.prospect_id`);
    return mailed.message_id;
  },
  'notes.list': async (world) => (await world.fixture('recruitment_notes')).prospect_id,
  async 'lists.remove_prospect'(world) {
    const { id: list_id } = await world.make('recruitment_lists');
    world.listed_prospect_id = (await world.fixture('recruitment_prospects')).id;
    await world.caller.post(`/recruitment/v1/lists/${list_id}/prospects`, { prospect_ids: [world.listed_prospect_id] });
    return list_id;
  },
  'processors.get': async (world) => withProcessor(world, (await world.fixture('programs')).id),
  'processors.delete': async (world) => withProcessor(world, (await world.make('programs')).id),
  'processors.test': async (world) => withProcessor(world, (await world.fixture('programs')).id),
  'processors.backfill': async (world) => withProcessor(world, (await world.make('programs')).id),
  'rails.get': async (world) => withRail(world, (await world.fixture('programs')).id),
  'rails.delete': async (world) => withRail(world, (await world.make('programs')).id),
  'searches.cancel': async (world) => {
    const { id } = await world.make('recruitment_searches');
    const isOver = async () => (await world.caller.get(`/recruitment/v1/searches/${id}`)).finished_at !== null;
    await eventually(isOver, 'a search to end');
    await world.rail?.query(sql`
      update recruitment.run set state = 'running', error = null, finished_at = null, claim = null where id = ${id}`);
    return id;
  },
  'prospects.get_reveal': async (world) => {
    const { id } = await world.make('recruitment_prospects');
    await world.caller.post(`/recruitment/v1/prospects/${id}/reveal`);
    return id;
  },
  'search_providers.delete': async (world) => {
    await world.caller.request('PUT', '/recruitment/v1/search_providers/searxng', await searchCredentials(world));
    return 'searxng';
  },
};

/** A campaign that nothing keeps from being launched. */
async function launchable(world: World): Promise<Json> {
  const inbox = await world.fixture('recruitment_inboxes');
  const { id } = await world.make('recruitment_campaigns');
  const { brand_id } = await world.caller.get(`/recruitment/v1/campaigns/${id}`);
  const path = `/recruitment/v1/campaigns/${id}`;
  const address = { postal_address: 'Hauptstr. 1, Berlin', privacy_url: 'https://acme.example.com/privacy' };
  await world.caller.patch(`/recruitment/v1/brands/${brand_id}`, address);
  await world.caller.patch(path, { inbox_ids: [inbox.id], steps: [{ subject: 'Hello', body_text: 'Hello' }] });
  const prospect = { brand_id, channel: 'website', key: `${fresh('site')}.com`, email: `${fresh('ada')}@example.com` };
  const { id: prospect_id } = await world.caller.post('/recruitment/v1/prospects', prospect);
  return world.caller.post(`${path}/prospects`, { prospect_ids: [prospect_id] }).then(() => world.caller.get(path));
}

/** A campaign that sends to nobody yet. The sweep would finish it, were no list being added. */
async function sendingCampaign(world: World): Promise<string> {
  const { id: list_id } = await world.fixture('recruitment_lists');
  const { id } = await world.make('recruitment_campaigns');
  await world.rail?.query(sql`
    with sending as (
      update recruitment.campaign set state = 'sending', launched_at = now() where id = ${id} returning organization_id, id
    )
    insert into recruitment.campaign_addition (organization_id, id, campaign_id, list_id, total)
    select s.organization_id, ${newId('fad')}, s.id, ${list_id}, 0 from sending s`);
  return id;
}

/** A campaign in a state that only time or a launch leads to. */
async function campaignIn(world: World, state: Sql): Promise<string> {
  const { id } = await world.make('recruitment_campaigns');
  await world.rail?.query(sql`update recruitment.campaign set ${state} where id = ${id}`);
  return id;
}

/** Returns the credentials of a provider that stands in for the one that every sample asks. */
const searchCredentials = async (world: World): Promise<Json> => ({
  credentials: { url: (await world.searchServer()).url },
});

/** Returns the body that connects to an account at Stripe that stands in for the real one. */
async function processorOf(world: World): Promise<Json> {
  const { url, credentials } = await world.stripeAccount();
  world.outside().services.provider_urls.stripe = url;
  return { mode: 'test', credentials };
}

async function withProcessor(world: World, program_id: string): Promise<string> {
  await world.caller.request('PUT', `/v1/programs/${program_id}/processors/stripe`, await processorOf(world));
  return program_id;
}

async function withRail(world: World, program_id: string): Promise<string> {
  await world.caller.request('PUT', `/v1/programs/${program_id}/rails/${sample_rail}`, debtor);
  return program_id;
}

/** A prospect of the world's brand who was sent an email from its inbox. */
async function mailedBy(world: World) {
  const { caller } = world;
  const { organization_id } = caller;
  const { id: brand_id } = await world.fixture('recruitment_brands');
  const { id: inbox_id } = await world.fixture('recruitment_inboxes');
  const campaign_id = await openCampaign(world.outside(), { organization_id, brand_id, inbox_id });
  const sending = { caller, brand_id, inbox_id, campaign_id };
  const mailed: Mailed & { email: string } = await mail(world.outside(), sending);
  return { sending, mailed };
}

/** A batch of one payout, of a new program, once it is created. By a colleague. */
async function batchOfOne(world: World, settings: Json = {}): Promise<Json> {
  const program = await world.make('programs');
  const program_id = program.id;
  await world.caller.patch(`/v1/programs/${program_id}`, settings);
  return batchWith(world, program_id);
}

/** A payout that needs no credentials to be sent. */
async function payoutToWallet(world: World): Promise<Json> {
  const { id: program_id } = await world.make('programs');
  await world.caller.patch(`/v1/programs/${program_id}`, { payout_methods: ['crypto'] });
  await batchWith(world, program_id, wallet);
  return (await world.caller.get(`/v1/payouts?program_id=${program_id}`)).data[0];
}

async function failedPayout(world: World): Promise<Json> {
  const payout = await payoutToWallet(world);
  await world.caller.post(`/v1/payouts/${payout.id}/send`);
  await world.rail?.query(sql`
    with failed as (update program.payout_attempt set status = 'failed', ended_at = now() where payout_id = ${payout.id})
    update program.payout set status = 'failed', failed_at = now() where id = ${payout.id}`);
  return payout;
}

async function batchWith(world: World, program_id: string, method: Json = payout_method): Promise<Json> {
  const { id: partner_id } = await world.caller.post('/v1/partners', {
    program_id,
    email: `${fresh('payee')}@example.com`,
  });
  await world.caller.request('PUT', `/v1/partners/${partner_id}/payout_method`, method);
  await world.caller.post('/v1/commissions', { program_id, partner_id, amount_minor: 10_000 });
  const { id } = await world.colleague.post('/v1/payout_batches', { program_id });
  let batch: Json = {};
  await eventually(async () => {
    batch = await world.caller.get(`/v1/payout_batches/${id}`);
    return batch.progress.state === 'done';
  }, 'the batch to be created');
  return batch;
}

/** Brings about objects that the API cannot create, or returns them where no list does. For a kind that is not named here, the world's sales are enough. */
const consequences: Record<string, (world: World) => Promise<unknown>> = {
  async webhook_deliveries(world) {
    const { id } = await world.fixture('webhook_endpoints');
    await world.caller.post(`/v1/webhook_endpoints/${id}/ping`);
  },
  async recruitment_webhook_deliveries(world) {
    const { id } = await world.fixture('recruitment_webhook_endpoints');
    return world.caller.post(`/recruitment/v1/webhook_endpoints/${id}/ping`);
  },
  async recruitment_emails(world) {
    const { id } = await world.make('recruitment_prospects');
    const email = `${fresh('prospect')}@example.com`;
    return world.caller.post(`/recruitment/v1/prospects/${id}/emails`, { email });
  },
  async recruitment_imports(world) {
    const { id: brand_id } = await world.fixture('recruitment_brands');
    return world.caller.post('/recruitment/v1/prospects/import', {
      brand_id,
      document: `url\n${fresh('imported')}.com`,
    });
  },
  async recruitment_campaign_additions(world) {
    const { id } = await world.fixture('recruitment_campaigns');
    const { id: list_id } = await world.fixture('recruitment_lists');
    return world.caller.post(`/recruitment/v1/campaigns/${id}/prospects`, { list_id });
  },
  recruitment_sequences: mailedBy,
  recruitment_threads: mailedBy,
  recruitment_messages: mailedBy,
  async recruitment_notes(world) {
    const { id } = await world.make('recruitment_prospects');
    return world.caller.post(`/recruitment/v1/prospects/${id}/notes`, { text: 'A note.' });
  },
  async payouts(world) {
    await batchWith(world, (await world.fixture('programs')).id);
  },
  async refunds(world) {
    const { id } = await world.make('sales');
    await world.caller.post(`/v1/sales/${id}/refund`);
  },
  async processor_events(world) {
    const program = await world.fixture('programs');
    await withProcessor(world, program.id);
    const stripe = await world.stripeAccount();
    const event = stripe.emit('refund.created', refund(fresh('re'), fresh('pi')));
    const { secret } = stripe.endpoints.findLast(({ url }) => url.endsWith(program.id)) as Json;
    await deliver(`${world.outside().address}/processors/stripe/${program.id}`, stripe.webhook(event, { secret }));
  },
  async risk_flags(world) {
    const { program_id, email, handle } = await world.make('partners');
    const click = {
      program_id,
      value: handle,
      landing_url: 'https://shop.example.com/',
      visitor_token: fresh('visitor'),
    };
    const { id: click_id } = await world.caller.post('/v1/clicks', click);
    await world.caller.request('POST', '/v1/customers', { program_id, click_id, email });
  },
};

export class World {
  readonly caller: Caller;
  /** Another person of the organization. */
  readonly colleague: Caller;
  readonly receiver_url: string;
  /** A bank's report on what was sent last. */
  report = '';
  /** Who is in the list that was made last. */
  listed_prospect_id = '';
  /** For what only the outside can make happen, such as a payment that fails. */
  readonly rail: Rail | undefined;
  readonly #fixtures = new Map<string, Promise<Json>>();
  #mailbox: Promise<Mailbox> | undefined;
  #search_server: Promise<SearchServer> | undefined;
  #stripe_account: Promise<StripeAccount> | undefined;

  constructor(caller: Caller, receiver_url: string, colleague = caller, rail?: Rail) {
    this.caller = caller;
    this.rail = rail;
    this.colleague = colleague;
    this.receiver_url = receiver_url;
  }

  outside(): Rail {
    if (!this.rail) throw untaught('make what the API cannot: give this world a rail');
    return this.rail;
  }

  /** Open until the test file ends: a process may run several, so that no other file can have the same one. */
  mailbox(): Promise<Mailbox> {
    this.#mailbox ??= startMailbox();
    return this.#mailbox;
  }

  /** Open until the test file ends, too. */
  stripeAccount(): Promise<StripeAccount> {
    this.#stripe_account ??= startServer(t, new StripeAccount());
    return this.#stripe_account;
  }

  /** Open until the test file ends, too. */
  searchServer(): Promise<SearchServer> {
    this.#search_server ??= startSearxng([{ url: 'https://baking.example.com/' }]);
    return this.#search_server;
  }

  /** One object of a kind, the same each time it is asked for. */
  fixture(plural: string): Promise<Json> {
    const known = this.#fixtures.get(plural) ?? this.make(plural);
    this.#fixtures.set(plural, known);
    return known;
  }

  /** A new object where the API can make one; else one that followed from what the API made. */
  async make(plural: string): Promise<Json> {
    const isOf = ({ path }: Operation) => /\/v1\/[a-z_]+$/.test(path) && resourceOf(path) === plural;
    const create = operations.find((one) => one.method === 'POST' && isOf(one));
    if (create) return this.call(create, await this.sample(create));
    const list = operations.find((one) => one.method === 'GET' && isOf(one));
    const consequence = consequences[plural];
    if (!list && consequence) return (await consequence(this)) as Json;
    if (!list) throw untaught(`make one of ${plural}, which the API can neither create nor list`);
    const newest = async () => (await this.call(list, await this.sample(list))).data[0] as Json | undefined;
    const before = consequences[plural] ? (await newest())?.id : undefined;
    await this.fixture('rules');
    await this.fixture('sales');
    await consequences[plural]?.(this);
    let found: Json | undefined;
    await eventually(async () => {
      found = await newest();
      return found !== undefined && found.id !== before;
    }, `something new in GET ${list.path}: teach test/samples.ts how it comes about`);
    return found as Json;
  }

  /** A request that succeeds. What acts on an object gets one of its own, what only reads shares one. */
  async sample(operation: Operation, given: Given = {}): Promise<Sample> {
    return {
      path: given.path ?? (await this.path(operation)),
      query: (await this.#values(operation, operation.query, {
        ...special_query[operation.name],
        ...given.query,
      })) as Record<string, string>,
      body: operation.method === 'GET' ? undefined : await this.#body(operation, given.body ?? {}),
    };
  }

  /**
   * Returns the answer to a sample.
   * @throws Error when it does not succeed: then it has to be taught what it lacks
   */
  async call(operation: Operation, sample: Sample): Promise<Json> {
    const answer = await send(this.caller, operation, sample);
    if (answer.status < 300) return answer.body;
    throw untaught(
      `call ${operation.name}: ${JSON.stringify(sample.body ?? sample.query)} answered ${answer.status} ${answer.text}`,
    );
  }

  /** Returns the path of an operation on an object of this world. */
  async path({ name, method, path, params }: Operation): Promise<string> {
    const plural = /\/[a-z_]+\/\{id\}/.test(path) ? resourceOf(path) : undefined;
    if (path === '/v1/exports/{resource}') return '/v1/exports/commissions';
    if (plural === undefined) {
      await prepared[name]?.(this);
      return chosen(path, params);
    }
    const id = prepared[name]
      ? await prepared[name](this)
      : ((await (method === 'GET' ? this.fixture(plural) : this.make(plural))).id as string);
    const named = path.replace('{rail}', sample_rail).replace('{processor}', 'stripe');
    return named.replace('{id}', id).replace('{prospect_id}', this.listed_prospect_id);
  }

  async #body(operation: Operation, given: Json): Promise<Json> {
    if (operation.bulk_of) return [await this.#body(operation.bulk_of, given)];
    const fields = await special[operation.name]?.(this, given);
    const values = await this.#values(operation, operation.body, { ...fields, ...given });
    const first = Object.keys(fieldsOf(operation.body).properties)[0];
    if (operation.method !== 'PATCH' || Object.keys(values).length > 0 || first === undefined) return values;
    return this.#values(operation, operation.body, { [first]: await this.value(operation, operation.body, first) });
  }

  async #values(operation: Operation, schema: z.ZodType, given: Json): Promise<Json> {
    const { required } = fieldsOf(schema);
    const values: Json = {};
    for (const field of required)
      if (given[field] === undefined) values[field] = await this.value(operation, schema, field);
    Object.assign(values, given);
    const result = schema.safeParse(values);
    if (!result.success)
      throw untaught(`ask ${operation.name}: ${JSON.stringify(values)} is refused, ${result.error.message}`);
    return values;
  }

  /** A value for one field. */
  value(operation: Operation, schema: z.ZodType, field: string): Promise<unknown> {
    const where = `${operation.name}: ${field}`;
    return special_value[where]?.(this) ?? this.#derive(field, fieldsOf(schema).properties[field] as JsonSchema, where);
  }

  async #derive(field: string, schema: JsonSchema, where: string): Promise<unknown> {
    const plural = resourceNamedBy(field);
    if (schema.const !== undefined) return schema.const;
    if (schema.enum) return schema.enum[0];
    const options = schema.anyOf ?? schema.oneOf;
    if (options) return this.#derive(field, options.find(({ type }) => type !== 'null') as JsonSchema, where);
    switch (schema.type) {
      case 'boolean':
        return false;
      case 'integer':
      case 'number':
        return Math.min(Math.max(1_000, schema.minimum ?? 0), schema.maximum ?? Number.MAX_SAFE_INTEGER);
      case 'array': {
        const item = schema.items as JsonSchema;
        if (plural) return [(await this.fixture(plural)).id];
        return Promise.all(Array.from({ length: schema.minItems ?? 0 }, () => this.#derive(field, item, where)));
      }
      case 'object': {
        const entries = (schema.required ?? []).map(async (name) => [
          name,
          await this.#derive(name, schema.properties?.[name] as JsonSchema, `${where}.${name}`),
        ]);
        return Object.fromEntries(await Promise.all(entries));
      }
      case 'string':
        return plural ? (await this.fixture(plural)).id : this.#text(field, schema);
      default:
        return {};
    }
  }

  #text(field: string, { format, minLength = 0, maxLength = 64 }: JsonSchema): string {
    if (field === 'url') return this.receiver_url;
    if (format === 'email') return `${fresh('person')}@example.com`;
    if (format === 'uri') return `https://shop.example.com/${fresh('page')}`;
    if (format === 'date-time') return new Date().toISOString();
    const known: Record<string, string> = {
      currency: 'USD',
      country: 'DE',
      country_code: 'DE',
      language_code: 'de',
      color: '#336699',
      timezone: 'UTC',
      default_timezone: 'UTC',
      custom_domain: `${fresh('partners')}.example.com`,
    };
    return known[field] ?? fresh('sample').padEnd(minLength, '-x').slice(0, maxLength);
  }
}

/** Sends a sample as it is. */
export function send(
  caller: Caller,
  { method }: Operation,
  { path, query, body }: Sample,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const asked = new URLSearchParams(query).toString();
  return caller.request(method, asked === '' ? path : `${path}?${asked}`, body, headers);
}

interface JsonSchema {
  type?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  format?: string;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  minLength?: number;
  maxLength?: number;
}

interface Fields {
  properties: Record<string, JsonSchema>;
  required: string[];
}

const known_fields = new WeakMap<z.ZodType, Fields>();

/** The fields that a body or a query may have, as JSON Schema, and which of them it must have. */
export function fieldsOf(schema: z.ZodType): Fields {
  const known = known_fields.get(schema);
  if (known) return known;
  const options = { io: 'input', unrepresentable: 'any', reused: 'inline' } as const;
  const { properties = {}, required = [] } = z.toJSONSchema(schema, options) as JsonSchema;
  const fields = { properties, required };
  known_fields.set(schema, fields);
  return fields;
}

/** `partner_id`, `partner_ids` → `partners`; undefined where the field names nothing of ours, as in `product_id`. */
export function resourceNamedBy(field: string): string | undefined {
  const [, noun] = /^(\w+)_ids?$/.exec(field) ?? [];
  if (noun === undefined || noun.startsWith('external_')) return undefined;
  const plural = /(s|x|ch)$/.test(noun) ? `${noun}es` : `${noun}s`;
  return resources.find((name) => name === plural) ?? resources.find((name) => name.endsWith(`_${plural}`));
}

/** Resources with a path of their own: `partners`, `webhook_endpoints`, `recruitment_webhook_endpoints`. */
export const resources: string[] = [
  ...new Set(operations.filter(({ path }) => /\/v1\/[a-z_]+\/\{id\}$/.test(path)).map(({ path }) => resourceOf(path))),
];

/** `partners` of `/v1/partners/{id}`, `recruitment_webhook_endpoints` of `/recruitment/v1/webhook_endpoints/{id}`. */
export function resourceOf(path: string): string {
  const [, root = '', plural = ''] = /^\/(?:([a-z]+)\/)?v1\/([a-z_]+)/.exec(path) ?? [];
  return root === '' ? plural : `${root}_${plural}`;
}

let made = 0;

/** A text that no other sample has. */
export const fresh = (of: string): string => `${of}-${++made}-${process.pid}`;

const untaught = (what: string): Error => new Error(`test/samples.ts does not know how to ${what}. Teach it.`);
