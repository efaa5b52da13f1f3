import type pg from 'pg';
import type { Progress } from './harness.ts';

/** The owner of the rows: a program that was made through the API, with its default group. */
export interface Owner {
  organization_id: string;
  program_id: string;
}

/** The rows of one kind: where they lie, and what the nth one holds besides its tenant and its id. */
interface Kind {
  table: string;
  prefix: string;
  /** Column → SQL over `s` (n: 1 the oldest, tail: of an id, at: when) and `o` (organization_id, program_id, group_id). */
  columns: Record<string, string>;
}

/** Every tenth row belongs to what the newest one of its owners is: the star partner, with the star's link and coupon. */
const star = (prefix: string): string => `'${prefix}_' || case when s.n % 10 = 0 then o.newest_tail else s.tail end`;
const own = (prefix: string): string => `'${prefix}_' || s.tail`;
/** `rest` but for every so manieth row. */
const mostly = (rest: string, others: Record<string, number>): string =>
  `case ${Object.entries(others)
    .map(([value, nth]) => `when s.n % ${nth} = 0 then '${value}'`)
    .join(' ')} else '${rest}' end`;
const times = { created_at: 's.at', updated_at: 's.at' };
const in_program = { program_id: 'o.program_id' };
const in_organization = { organization_id: 'o.organization_id' };

/** In an order in which what is named is there. */
const kinds: Kind[] = [
  {
    table: 'program.program',
    prefix: 'prg',
    columns: {
      name: `'Program ' || s.n`,
      product_name: `'Program ' || s.n`,
      website_url: `'https://shop.example.com'`,
      subdomain: `'bench-' || s.tail`,
      currency: `'USD'`,
      status: `'active'`,
      cookie_days: '60',
      url_params: `'{ref,via}'`,
      commission_on_net_revenue: 'false',
      holding_period_days: '30',
      min_payout_minor: '5000',
      payout_term: `'net_30'`,
      payout_methods: `'{paypal}'`,
      block_self_referrals: 'true',
      blocked_countries: `'{}'`,
      require_tax_forms: 'false',
      auto_payouts_enabled: 'false',
      attribution: `'last_click'`,
      application_required: 'false',
      auto_enrol_customers: 'false',
      default_rejection_reason: `'No.'`,
      ...times,
    },
  },
  {
    table: 'program.partner_group',
    prefix: 'grp',
    columns: { ...in_program, name: `'Group ' || s.n`, slug: `'group-' || s.n`, ...times },
  },
  {
    table: 'program.tag',
    prefix: 'tag',
    columns: { ...in_program, name: `'Tag ' || s.n`, color: `'#336699'`, ...times },
  },
  {
    table: 'program.publishable_key',
    prefix: 'pk',
    columns: {
      ...in_program,
      name: `'Site ' || s.n`,
      mode: `'live'`,
      key: `'rail_pk_live_' || s.tail || o.program_id`,
      allowed_origins: `array['https://shop.example.com']`,
      signing_secret: `'\\x00'`,
      ...times,
    },
  },
  {
    table: 'program.partner',
    prefix: 'part',
    columns: {
      ...in_program,
      group_id: `case when s.n % 2 = 0 then o.group_id else ${own('grp')} end`,
      email: `'partner-' || s.n || '@example.com'`,
      mailbox: `'partner-' || s.n || '@example.com'`,
      first_name: `'Ada'`,
      last_name: `'Lovelace'`,
      company_name: `'Analytical Engines'`,
      website_url: `'https://partner.example.com'`,
      country_code: `'DE'`,
      handle: `'partner-' || s.n`,
      status: mostly('active', { pending: 9, suspended: 50 }),
      ...times,
    },
  },
  {
    table: 'program.application',
    prefix: 'app',
    columns: {
      ...in_program,
      group_id: 'o.group_id',
      partner_id: own('part'),
      email: `'partner-' || s.n || '@example.com'`,
      answers: `'{"audience": "12,000 readers of a newsletter"}'`,
      status: mostly('approved', { pending: 9, rejected: 50 }),
      ...times,
    },
  },
  {
    table: 'program.link',
    prefix: 'lnk',
    columns: {
      ...in_program,
      partner_id: star('part'),
      param: `'ref'`,
      value: `'value-' || s.n`,
      destination_url: `'https://shop.example.com/pricing'`,
      url: `'https://shop.example.com/pricing?ref=value-' || s.n`,
      short_url: `'https://go.example.com/r/bench' || s.tail`,
      short_slug: `'bench' || s.tail`,
      short_domain: `'go.example.com'`,
      ...times,
    },
  },
  {
    table: 'program.coupon',
    prefix: 'cpn',
    columns: {
      ...in_program,
      partner_id: star('part'),
      group_id: 'o.group_id',
      code: `'CODE' || s.n`,
      external_id: `'promo_' || s.n`,
      ...times,
    },
  },
  {
    table: 'program.referral',
    prefix: 'ref',
    columns: {
      ...in_program,
      partner_id: star('part'),
      link_id: star('lnk'),
      visitor_token: own('visitor'),
      landing_url: `'https://shop.example.com/pricing?ref=value-' || s.n`,
      tracked_by: `'link'`,
      // The customers of every tenth are the newest one's.
      status: `case when s.n % 10 = 0 and s.tail <> o.newest_tail then 'visit' when s.n % 9 = 0 then 'lead' else 'converted' end`,
      expires_at: `s.at + interval '60 days'`,
      ...times,
    },
  },
  {
    table: 'program.click',
    prefix: 'clk',
    columns: {
      ...in_program,
      partner_id: star('part'),
      link_id: star('lnk'),
      referral_id: star('ref'),
      param: `'ref'`,
      value: `'value-' || s.n`,
      landing_url: `'https://shop.example.com/pricing?ref=value-' || s.n`,
      visitor_token: star('visitor'),
      user_agent: `'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'`,
      ip_hash: `md5(s.n::text)`,
      country: `'DE'`,
      device: `'desktop'`,
      attributed_at: 's.at',
      created_at: 's.at',
    },
  },
  {
    table: 'program.customer',
    prefix: 'cus',
    columns: {
      ...in_program,
      partner_id: star('part'),
      referral_id: star('ref'),
      link_id: star('lnk'),
      coupon_id: star('cpn'),
      external_customer_id: `'customer_' || s.n`,
      email: `'customer-' || s.n || '@example.com'`,
      name: `'Grace Hopper'`,
      status: mostly('active', { lead: 9, cancelled: 50 }),
      tracked_by: `'link'`,
      lead_at: 's.at',
      converted_at: 's.at',
      ...times,
    },
  },
  {
    table: 'program.rule',
    prefix: 'flw',
    columns: {
      ...in_program,
      name: `'Rule ' || s.n`,
      rate_type: `'percent'`,
      rate_value: '2000',
      priority: '0',
      // The active ones are read for each sale: a program has a few.
      status: `case when s.n = 1 then 'active' else 'inactive' end`,
      applies_to: `'all'`,
      partner_ids: `'{}'`,
      group_ids: `'{}'`,
      tag_ids: `'{}'`,
      link_ids: `'{}'`,
      product_ids: `'{}'`,
      tiers: `'[]'`,
      ...times,
    },
  },
  {
    table: 'program.sale',
    prefix: 'sale',
    columns: {
      ...in_program,
      partner_id: star('part'),
      customer_id: own('cus'),
      link_id: star('lnk'),
      referral_id: star('ref'),
      coupon_id: star('cpn'),
      external_charge_id: `'charge_' || s.n`,
      product_id: `'plan_pro'`,
      amount_minor: '9900',
      net_amount_minor: '9900',
      refunded_minor: '100',
      refunded_at: 's.at',
      status: `'partially_refunded'`,
      currency: `'USD'`,
      is_first_sale: 'true',
      occurred_at: 's.at',
      ...times,
    },
  },
  {
    table: 'program.refund',
    prefix: 'rfd',
    columns: {
      ...in_program,
      sale_id: own('sale'),
      external_refund_id: `'refund_' || s.n`,
      amount_minor: '100',
      refunded_at: 's.at',
      ...times,
    },
  },
  {
    table: 'program.processor_event',
    prefix: 'pev',
    columns: {
      ...in_program,
      processor: `'stripe'`,
      external_event_id: `'evt_' || s.n`,
      type: `'invoice.paid'`,
      external_object_id: `'in_' || s.n`,
      external_customer_id: `'cus_' || s.n / 10`,
      livemode: 'true',
      occurred_at: 's.at',
      rank: '5',
      queue: `'cus_' || s.n / 10`,
      run_id: own('run'),
      status: `'done'`,
      result_id: own('sale'),
      body: `'{}'`,
      worked_at: 's.at',
      ...times,
    },
  },
  {
    table: 'program.sale_claim',
    prefix: 'clm',
    columns: {
      ...in_program,
      partner_id: star('part'),
      external_charge_id: `'order_' || s.n`,
      finding: `'not_found'`,
      status: mostly('rejected', { open: 9 }),
      resolved_at: 'case when s.n % 9 = 0 then null else s.at end',
      ...times,
    },
  },
  {
    table: 'program.dispute',
    prefix: 'dsp',
    columns: {
      ...in_program,
      sale_id: own('sale'),
      external_dispute_id: `'dispute_' || s.n`,
      amount_minor: '100',
      status: mostly('won', { lost: 9 }),
      opened_at: 's.at',
      closed_at: 's.at',
      ...times,
    },
  },
  {
    table: 'program.commission',
    prefix: 'com',
    columns: {
      ...in_program,
      partner_id: star('part'),
      customer_id: own('cus'),
      sale_id: own('sale'),
      rule_id: `'flw_' || o.oldest_tail`,
      kind: `'sale'`,
      amount_minor: '1960',
      base_amount_minor: '9800',
      currency: `'USD'`,
      rate_type: `'percent'`,
      rate_value: '2000',
      status: mostly('pending', { approved: 9 }),
      mature_at: `s.at + interval '30 days'`,
      ...times,
    },
  },
  {
    table: 'program.payout_batch',
    prefix: 'batch',
    columns: {
      ...in_program,
      stage: `'ready'`,
      cutoff: 's.at',
      due_at: 's.at',
      approval_required: 'false',
      generated_at: 's.at',
      ...times,
    },
  },
  {
    table: 'program.payout',
    prefix: 'pyt',
    columns: {
      ...in_program,
      batch_id: own('batch'),
      partner_id: star('part'),
      amount_minor: '1980',
      currency: `'USD'`,
      // Tests of a rail that are over: only these payouts hold no commissions.
      livemode: 'false',
      status: `'failed'`,
      failed_at: 's.at',
      method: `'paypal'`,
      period_start: 's.at',
      period_end: 's.at',
      due_at: 's.at',
      due_emitted_at: 's.at',
      commission_count: '1',
      ...times,
    },
  },
  {
    table: 'program.risk_flag',
    prefix: 'rsk',
    columns: {
      ...in_program,
      partner_id: star('part'),
      customer_id: own('cus'),
      kind: mostly('self_referral', { duplicate_identity: 9 }),
      severity: mostly('low', { high: 9 }),
      evidence: `'{"why": "the same mailbox"}'`,
      ...times,
    },
  },
  {
    table: 'webhooks.event',
    prefix: 'evt',
    columns: {
      position: `nextval('webhooks.event_position')`,
      ...in_program,
      partner_id: star('part'),
      type: mostly('commission.created', { 'sale.created': 9, 'customer.created': 50 }),
      body: `json_build_object('id', ${own('evt')}, 'type', 'commission.created', 'created_at', s.at, 'data',
        json_build_object('commission_id', ${own('com')}, 'sale_id', ${own('sale')}, 'partner_id', ${star('part')}, 'amount_minor', 1980))`,
      created_at: 's.at',
    },
  },
  {
    table: 'core.audit_entry',
    prefix: 'aud',
    columns: {
      operation: mostly(`partners.update`, { 'commissions.update': 9 }),
      object_id: star('part'),
      fields: `'{status}'`,
      created_at: 's.at',
    },
  },
  {
    table: 'webhooks.endpoint',
    prefix: 'whe',
    columns: {
      ...in_program,
      partner_id: `case when s.n % 10 = 0 then ${star('part')} end`,
      url: `'https://hooks.example.com/' || s.n`,
      // An enabled one would receive every event that is made while the bench runs.
      status: `'disabled'`,
      disabled_reason: `'disabled_by_hand'`,
      secret: `decode(md5(s.n::text), 'hex')`,
      ...times,
    },
  },
  {
    table: 'webhooks.delivery',
    prefix: 'whd',
    columns: {
      ...in_program,
      endpoint_id: `'whe_' || o.newest_tail`,
      event_id: own('evt'),
      event_type: mostly('commission.created', { 'sale.created': 9, 'customer.created': 50 }),
      queue_position: 's.n',
      status: mostly('delivered', { failed: 9 }),
      attempt: '1',
      ...times,
    },
  },
];

/** Rows that depend on these and are no list of their own. */
const besides = [
  `insert into program.partner_group (organization_id, id, program_id, name, slug, is_default)
    select o.organization_id, 'grp_default_' || s.tail, ${own('prg')}, 'Default', 'default', true from bench_row s, bench_owner o`,
  `insert into webhooks.endpoint_queue (organization_id, endpoint_id, done_position)
    select o.organization_id, ${own('whe')}, case when s.tail = o.newest_tail then s.n else 0 end from bench_row s, bench_owner o`,
  `insert into webhooks.attempt (organization_id, delivery_id, attempt, at, duration_ms, status_code, response_body)
    select o.organization_id, ${own('whd')}, 1, s.at, 20, case when s.n % 9 = 0 then 500 else 200 end, 'ok' from bench_row s, bench_owner o`,
];

/**
 * Fills a program with so many rows of everything that lists show, over the four weeks before now, each with what it names. The
 * organization has as many other programs, which are older than this one.
 * @returns what follows the prefix and `_` in the ids of the rows, oldest first: the same for each kind
 */
export async function fill(
  client: pg.Client,
  { organization_id, program_id }: Owner,
  count: number,
  progress: Progress = () => {},
): Promise<string[]> {
  await client.query('drop table if exists pg_temp.bench_row, pg_temp.bench_owner');
  await client.query(`
    create temp table bench_row as
    select n, at, core.id_time_part(at) || 'e00g' || lpad(n::text, 12, '0') as tail
    from (
      select n, date_trunc('milliseconds', now()) - interval '28 days' * (${count} - n + 1) / ${count} as at
      from generate_series(1, ${count}) as n
    ) as spread`);
  const { rows } = await client.query<{ tail: string }>('select tail from bench_row order by n');
  const tails = rows.map(({ tail }) => tail);
  // A program's default group is its oldest.
  await client.query(`
    update program.partner_group
    set id = 'grp_' || core.id_time_part(now() - interval '29 days') || substr(id, 15), created_at = now() - interval '29 days'
    where organization_id = '${organization_id}' and program_id = '${program_id}'`);
  await client.query(`
    create temp table bench_owner as
    select organization_id, program_id, id as group_id, '${tails.at(-1)}' as newest_tail, '${tails[0]}' as oldest_tail
    from program.partner_group
    where organization_id = '${organization_id}' and program_id = '${program_id}'`);
  for (const [parent, prefix] of partitioned) {
    await client.query(
      `call core.ensure_weekly_partitions('${parent}', '${prefix}', now() - interval '5 weeks', now())`,
    );
  }
  for (const kind of kinds) {
    progress(`${count} rows of ${kind.table}`);
    await client.query(insertion(kind));
  }
  for (const statement of besides) await client.query(statement);
  return tails;
}

/** Rows of the weeks before a database was made have no partition of their own in it. */
const partitioned = [
  ['program.click', 'clk'],
  ['webhooks.event', 'evt'],
  ['webhooks.delivery', 'whd'],
  ['webhooks.attempt', 'whd'],
];

function insertion({ table, prefix, columns }: Kind): string {
  const all = { ...in_organization, id: own(prefix), ...columns };
  return `insert into ${table} (${Object.keys(all).join(', ')}) select ${Object.values(all).join(', ')} from bench_row s, bench_owner o order by s.n`;
}
