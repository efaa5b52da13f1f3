import t from 'tap';
import { z } from 'zod';
import { operations } from '../../src/operations.ts';
import { type Json, startRail } from '../harness.ts';
import { fresh, openShop } from '../shop.ts';

/**
 * Section 2 of the specification, record by record: `field` and its type; `?` where it may be null. s string, i integer, b boolean, t time,
 * a array of strings, o object, j any JSON.
 */
const specified: Record<string, string> = {
  programs:
    'id:s object:s name:s product_name:s website_url:s subdomain:s currency:s status:s custom_domain:s? terms_url:s? terms_version:s? cookie_days:i url_params:a commission_on_net_revenue:b holding_period_days:i min_payout_minor:i payout_term:s payout_methods:a block_self_referrals:b blocked_countries:a require_tax_forms:b auto_payouts_enabled:b processor:s? created_at:t updated_at:t',
  partners:
    'id:s program_id:s group_id:s? email:s first_name:s? last_name:s? display_name:s? company_name:s? website_url:s? country_code:s? language_code:s? handle:s status:s decline_reason:s? suspension_reason:s? currency:s min_payout_minor:i? terms_accepted_at:t? terms_version:s? completed_onboarding:b email_first_referral:b email_new_referral:b email_payout_paid:b metadata:o? created_at:t updated_at:t',
  groups:
    'id:s object:s program_id:s name:s slug:s description:s? landing_url:s? is_private:b is_default:b created_at:t updated_at:t',
  tags: 'id:s object:s program_id:s name:s color:s created_at:t updated_at:t',
  applications:
    'id:s object:s program_id:s group_id:s? partner_id:s? email:s answers:j source:s? status:s reviewed_by_user_id:s? reviewed_at:t? rejection_reason:s? created_at:t updated_at:t',
  links:
    'id:s object:s partner_id:s param:s value:s destination_url:s url:s short_url:s? short_slug:s? short_domain:s? label:s? rate_override:j created_at:t updated_at:t',
  coupons: 'id:s object:s program_id:s partner_id:s? group_id:s? code:s external_id:s? created_at:t updated_at:t',
  clicks:
    'id:s object:s program_id:s partner_id:s link_id:s? referral_id:s? user_agent:s? referer:s? country:s? device:s? landing_url:s? created_at:t',
  referrals:
    'id:s object:s program_id:s partner_id:s link_id:s? landing_url:s? utm:j tracked_by:s status:s expires_at:t created_at:t updated_at:t',
  customers:
    'id:s object:s program_id:s partner_id:s referral_id:s? link_id:s? coupon_id:s? processor:s? external_customer_id:s? external_subscription_id:s? email:s? name:s? identifier:s? status:s tracked_by:s lead_at:t? converted_at:t? metadata:o? created_at:t updated_at:t',
  sales:
    'id:s object:s program_id:s partner_id:s? customer_id:s? link_id:s? referral_id:s? coupon_id:s? external_charge_id:s external_subscription_id:s? product_id:s? amount_minor:i tax_minor:i shipping_minor:i fee_minor:i discount_minor:i net_amount_minor:i refunded_minor:i currency:s status:s is_first_sale:b occurred_at:t refunded_at:t? metadata:o? created_at:t updated_at:t',
  commissions:
    'id:s object:s program_id:s partner_id:s customer_id:s? sale_id:s? rule_id:s? payout_id:s? kind:s clawback_of:s? amount_minor:i base_amount_minor:i? currency:s rate_type:s? rate_value:i? status:s mature_at:t approved_at:t? paid_at:t? voided_at:t? void_reason:s? note:s? created_at:t updated_at:t',
  rules:
    'id:s object:s program_id:s name:s rate_type:s rate_value:i priority:i status:s applies_to:s partner_ids:a group_ids:a tag_ids:a link_ids:a product_ids:a duration_months:i? max_payments:i? min_sale_minor:i? max_commission_minor:i? tier_metric:s? starts_at:t? ends_at:t? created_at:t updated_at:t',
};

/** `include[]=stats`, and which of them the specification names: all integers, but for the currency. */
const stats: Record<string, string[]> = {
  programs: ['partners', 'active_partners', 'clicks', 'referrals', 'customers', 'sales_minor', 'commissions_minor'],
  partners: ['clicks', 'referrals', 'customers', 'commissions_minor', 'paid_minor', 'currency'],
  groups: ['partners'],
  links: ['clicks', 'referrals', 'customers'],
  coupons: ['customers'],
};

/** The values that the specification and the decisions list. */
const enumerations: Record<string, Record<string, string[]>> = {
  programs: {
    status: ['active', 'paused'],
    payout_term: ['net_15', 'net_30', 'net_60'],
    processor: ['stripe', 'paddle', 'chargebee', 'manual', 'api'],
  },
  partners: { status: ['pending', 'active', 'declined', 'suspended'] },
  applications: { status: ['pending', 'approved', 'rejected', 'withdrawn'] },
  referrals: { status: ['visit', 'lead', 'converted'], tracked_by: ['link', 'coupon', 'manual', 'api'] },
  customers: {
    status: ['lead', 'trial', 'active', 'cancelled', 'refunded', 'suspended'],
    tracked_by: ['link', 'coupon', 'manual', 'api'],
    processor: ['stripe', 'paddle', 'chargebee', 'manual', 'api'],
  },
  sales: { status: ['paid', 'partially_refunded', 'refunded'] },
  commissions: {
    status: ['pending', 'approved', 'due', 'on_hold', 'paid', 'voided', 'rejected'],
    kind: ['sale', 'bonus', 'clawback'],
  },
  rules: { status: ['active', 'inactive'], applies_to: ['all', 'first', 'renewals'], rate_type: ['percent', 'fixed'] },
};

interface Schema {
  type?: string | string[];
  const?: string;
  enum?: string[];
  format?: string;
  $ref?: string;
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
}

const described = (schema: z.ZodType, io: 'input' | 'output'): Schema =>
  z.toJSONSchema(schema, { io, unrepresentable: 'any', reused: 'inline' }) as Schema;

const lists = new Map(
  operations.filter(({ name }) => name.endsWith('.list')).map((operation) => [operation.tag, operation]),
);

const recordOf = (plural: string): Schema => {
  const { reply } = lists.get(plural) as NonNullable<ReturnType<typeof lists.get>>;
  const page = described(reply, 'output') as Schema & { $defs?: Record<string, Schema> };
  const item = page.properties?.data?.items as Schema;
  return item.$ref ? (page.$defs?.[item.$ref.replace('#/$defs/', '')] as Schema) : item;
};

const letters: Record<string, string> = { string: 's', integer: 'i', boolean: 'b', array: 'a', object: 'o' };

/** Any JSON is described by reference to itself. */
function letterOf({ $ref, type, format, anyOf = [] }: Schema): string {
  if ($ref) return 'j';
  const [first, ...others] = [type ?? []].flat();
  const inner = anyOf.find((one) => one.type !== 'null');
  if (inner) return `${letterOf(inner)}?`;
  const letter = format === 'date-time' ? 't' : letters[first as string];
  return others.includes('null') ? `${letter}?` : `${letter}`;
}

for (const [plural, fields] of Object.entries(specified)) {
  t.test(
    `${plural} have the fields of the specification, always, of its types and nullable where it says so`,
    async (t) => {
      const { properties = {}, required = [] } = recordOf(plural);
      for (const [field, letter] of fields.split(' ').map((one) => one.split(':') as [string, string])) {
        t.ok(required.includes(field), `${field} is always present`);
        const shown = letterOf(properties[field] as Schema);
        t.ok(
          letter === 'j' ? shown.startsWith('j') || shown === '' : shown === letter,
          `${field} is ${letter}, not ${shown}`,
        );
      }
      for (const [field, values] of Object.entries(enumerations[plural] ?? {})) {
        const { enum: direct, anyOf = [] } = properties[field] as Schema;
        t.same((direct ?? anyOf.find((one) => one.enum)?.enum)?.toSorted(), values.toSorted(), field);
      }
      const added = properties.stats?.properties;
      t.same(Object.keys(added ?? {}).sort(), (stats[plural] ?? []).toSorted(), 'stats');
      t.notOk(required.includes('stats'));
      for (const [name, one] of Object.entries(added ?? {}))
        t.equal(one.type, name === 'currency' ? 'string' : 'integer');
    },
  );
}

t.test('each list can be filtered by the common fields that its record has', async (t) => {
  const named = ['status', 'partner_id', 'group_id', 'link_id', 'coupon_id', 'customer_id', 'email'];
  for (const plural of Object.keys(specified)) {
    const { properties: filters = {} } = described((lists.get(plural) as { query: z.ZodType }).query, 'input');
    const fields = Object.keys(recordOf(plural).properties ?? {});
    for (const field of named.filter((one) => fields.includes(one))) t.ok(field in filters, `${plural} by ${field}`);
    for (const bound of ['created_after', 'created_before']) t.ok(bound in filters, `${plural} by ${bound}`);
  }
});

const rail = await startRail({ worker: false });
const shop = await openShop(rail);
const { merchant, program } = shop;
const program_id = program.id;

t.test('a new program has the documented defaults', async (t) => {
  const { id, created_at, updated_at, subdomain, default_rejection_reason, payout_methods, ...rest } = program;
  t.same(rest, {
    object: 'program',
    name: 'Acme',
    product_name: 'Acme',
    website_url: 'https://acme.example.com/',
    currency: 'USD',
    status: 'active',
    custom_domain: null,
    terms_url: null,
    terms_version: null,
    cookie_days: 60,
    url_params: ['ref', 'via'],
    commission_on_net_revenue: false,
    holding_period_days: 30,
    min_payout_minor: 5_000,
    payout_term: 'net_30',
    block_self_referrals: true,
    blocked_countries: [],
    require_tax_forms: false,
    auto_payouts_enabled: false,
    processor: null,
    attribution: 'last_click',
    application_required: false,
    auto_enrol_customers: false,
    weekly_summary: false,
    questions: [],
    partner_emails: true,
    timezone: 'UTC',
    min_payouts: {},
    payout_approval_required: false,
    payout_limit_minor: null,
    payout_limits: {},
  });
  t.match(subdomain, /^acme/);
  t.match(await shop.list('groups'), [{ is_default: true, name: 'Default' }]);
});

/** Values that a field takes, and values that it refuses. */
type Bounds = Record<string, { takes: unknown[]; refuses: unknown[] }>;

const optionalText = { takes: [null, 'x'], refuses: [1] };
const flag = { takes: [true, false], refuses: [null, 'yes'] };
const long = (length: number): string => 'x'.repeat(length);

const updates: Record<string, { make: () => Promise<Json>; bounds: Bounds }> = {
  programs: {
    make: async () => program,
    bounds: {
      name: { takes: ['x'], refuses: ['', null] },
      product_name: { takes: ['x'], refuses: ['', null] },
      website_url: { takes: ['https://a.example.com/'], refuses: ['nowhere', 'javascript:alert(1)', null] },
      status: { takes: ['paused', 'active'], refuses: ['closed', null] },
      terms_url: { takes: ['https://a.example.com/terms', null], refuses: ['x'] },
      cookie_days: { takes: [1, 365], refuses: [0, 366, 1.5, '30', null] },
      commission_on_net_revenue: flag,
      holding_period_days: { takes: [0, 180], refuses: [-1, 181, null] },
      min_payout_minor: { takes: [0, 1], refuses: [-1, 0.5, null] },
      payout_term: { takes: ['net_15', 'net_60', 'net_30'], refuses: ['net_90'] },
      block_self_referrals: flag,
      blocked_countries: { takes: [['KP', 'IR'], []], refuses: [['KPX'], ['K'], 'KP', null] },
      require_tax_forms: flag,
      timezone: { takes: ['Europe/Berlin', 'UTC'], refuses: ['CET', '+01:00', 'Europe/Nowhere', '', null] },
    },
  },
  partners: {
    make: () => shop.partner(),
    bounds: {
      first_name: optionalText,
      last_name: optionalText,
      display_name: optionalText,
      company_name: optionalText,
      website_url: { takes: [null, 'https://a.example.com/'], refuses: ['x'] },
      country_code: { takes: [null, 'DE'], refuses: ['DEU', 'D'] },
      handle: {
        takes: ['ab', `a${'b'.repeat(31)}`, 'a-b'],
        refuses: ['a', `a${'b'.repeat(32)}`, '-a', 'a-', 'A', 'a_b', null],
      },
      group_id: { takes: [null], refuses: [1] },
      min_payout_minor: { takes: [null, 0], refuses: [-1] },
      status: { takes: ['active', 'suspended'], refuses: ['pending', 'declined', null] },
      suspension_reason: optionalText,
      tag_ids: { takes: [[]], refuses: [null, 'tag_x'] },
      metadata: { takes: [null, { a: 1 }], refuses: ['x', [1]] },
    },
  },
  groups: {
    make: () => merchant.post('/v1/groups', { program_id, name: fresh('group') }),
    bounds: {
      name: { takes: ['x'], refuses: ['', null] },
      description: optionalText,
      landing_url: { takes: [null, 'https://a.example.com/'], refuses: ['x'] },
      is_private: flag,
      is_default: { takes: [true], refuses: [false, null] },
    },
  },
  tags: {
    make: () => merchant.post('/v1/tags', { program_id, name: fresh('tag'), color: '#a1B2c3' }),
    bounds: {
      name: { takes: ['x'], refuses: ['', null] },
      color: { takes: ['#000000', '#aBcDeF'], refuses: ['red', '#12345', '#1234567', null] },
    },
  },
  links: {
    make: async () => shop.link(await shop.partner()),
    bounds: {
      destination_url: { takes: ['https://a.example.com/x'], refuses: ['x', null] },
      label: optionalText,
    },
  },
  coupons: {
    make: () => shop.coupon(),
    bounds: { external_id: optionalText, partner_id: { takes: [null], refuses: [1] } },
  },
  customers: {
    make: async () => shop.customer({ partner_id: (await shop.partner()).id }),
    bounds: {
      email: { takes: [null, 'a@example.com'], refuses: ['x'] },
      name: optionalText,
      identifier: optionalText,
      status: { takes: ['lead', 'trial', 'active', 'cancelled', 'suspended'], refuses: ['refunded', 'gone', null] },
      metadata: { takes: [null, {}], refuses: ['x'] },
    },
  },
};

for (const [plural, { make, bounds }] of Object.entries(updates)) {
  t.test(`an update of ${plural} takes what the specification lists, within its bounds`, async (t) => {
    const { id } = await make();
    for (const [field, { takes, refuses }] of Object.entries(bounds)) {
      for (const value of takes) {
        const { status, body } = await merchant.request('PATCH', `/v1/${plural}/${id}`, { [field]: value });
        t.same([status, body.error], [200, undefined], `${field}: ${JSON.stringify(value)}`);
        t.same(body[field], value);
      }
      for (const value of refuses) {
        const answer = await merchant.request('PATCH', `/v1/${plural}/${id}`, { [field]: value });
        t.match(answer, {
          status: 400,
          body: { error: { code: 'invalid_parameter', param: new RegExp(`^${field}`) } },
        });
      }
    }
  });
}

t.test('a create holds to the bounds of the specification', async (t) => {
  const { id: partner_id, handle } = await shop.partner();
  const link = { program_id, partner_id, destination_url: 'https://a.example.com/' };
  const click = { program_id, value: handle, landing_url: 'https://a.example.com/', visitor_token: 'visitor-0001' };
  const creates: [path: string, body: Json, bounds: Bounds][] = [
    [
      '/v1/links',
      link,
      {
        value: { takes: ['xy', long(64)], refuses: ['a', long(65)] },
        param: { takes: ['p', long(32), ''], refuses: [long(33)] },
        destination_url: { takes: [], refuses: ['x', 'ftp://a.example.com'] },
      },
    ],
    ['/v1/coupons', { program_id }, { code: { takes: ['c', long(64)], refuses: ['', long(65)] } }],
    [
      '/v1/clicks',
      click,
      {
        visitor_token: { takes: [long(8), long(128)], refuses: [long(7), long(129)] },
        value: { takes: [handle.toUpperCase()], refuses: [''] },
        country: { takes: ['DE', 'T1', 'DEU'], refuses: [] },
        ip: { takes: ['203.0.113.1', '2001:db8::1', 'here', '203.0.113.256'], refuses: [] },
      },
    ],
    [
      '/v1/customers',
      { program_id, partner_id },
      { status: { takes: ['lead', 'trial', 'active', 'cancelled', 'suspended'], refuses: ['refunded'] } },
    ],
    ['/v1/partners', { program_id }, { email: { takes: ['bounds@example.com'], refuses: ['x', null] } }],
    ['/v1/tags', { program_id, name: 'bounds' }, { color: { takes: ['#123456'], refuses: ['123456'] } }],
  ];
  for (const [path, body, bounds] of creates) {
    for (const [field, { takes, refuses }] of Object.entries(bounds)) {
      for (const value of takes) {
        const unique = path === '/v1/links' && field === 'param' ? { value: fresh('bounds') } : {};
        const answer = await merchant.request('POST', path, { ...body, ...unique, [field]: value });
        t.same([answer.status, answer.body.error], [201, undefined], `${path} ${field}: ${JSON.stringify(value)}`);
      }
      for (const value of refuses) {
        const answer = await merchant.request('POST', path, { ...body, [field]: value });
        t.match(
          answer,
          { status: 400, body: { error: { param: field } } },
          `${path} ${field}: ${JSON.stringify(value)}`,
        );
      }
    }
  }
  const { id } = await merchant.post('/v1/applications', { program_id, email: 'applicant@example.com' });
  const reject = (reason: string) => merchant.request('POST', `/v1/applications/${id}/reject`, { reason });
  t.match(await reject(long(1001)), { status: 400, body: { error: { param: 'reason' } } });
  t.match(await reject(long(1000)), { status: 200, body: { rejection_reason: long(1000) } });
});

t.test('metadata is stored as given, up to 50 keys and 16 KiB', async (t) => {
  const { id } = await shop.partner();
  const store = (metadata: Json) => merchant.request('PATCH', `/v1/partners/${id}`, { metadata });
  const keys = (many: number) => Object.fromEntries(Array.from({ length: many }, (_, nth) => [`key_${nth}`, nth]));
  const given = { ...keys(48), nested: { list: [1, 'two', null, true] }, text: '"ü' };
  t.same((await store(given)).body.metadata, given);
  t.equal((await store(keys(51))).status, 400);
  t.equal((await store({ text: long(16_384 - '{"text":""}'.length) })).status, 200);
  t.equal((await store({ text: long(16_385 - '{"text":""}'.length) })).status, 400);
});
