import type pg from 'pg';
import type { Owner } from './rows.ts';

interface Brand extends Owner {
  brand_id: string;
}

const hash = (text: string): string => `decode(md5(${text}), 'hex')`;
const id = (prefix: string): string => `'${prefix}_bench' || lpad(s.n::text, 21, '0')`;
const inboxes = 50;
const inbox = `'fin_bench' || lpad((s.n % ${inboxes})::text, 21, '0')`;
const campaign = `'fca_bench${'0'.repeat(21)}'`;
const day = `(s.at at time zone 'UTC')::date`;

/**
 * Gives a brand so many prospects with an address that a reveal found, each of whom was sent an email by a campaign that has finished, with the
 * ledger of credits and the counts of days; a scan that visited them, and a deal of every tenth.
 */
export async function fillOutreach(client: pg.Client, brand: Brand, count: number): Promise<void> {
  const [organization, of_brand] = [`'${brand.organization_id}'`, `'${brand.brand_id}'`];
  await client.query(`
    create temp table outreach_row as
    select n, now() - interval '28 days' * (${count} - n + 1) / ${count} as at from generate_series(1, ${count}) as n`);
  const insert = (table: string, columns: Record<string, string>, from = 'outreach_row s') =>
    client.query(`
      insert into recruitment.${table} (organization_id, ${Object.keys(columns).join(', ')})
      select ${organization}, ${Object.values(columns).join(', ')} from ${from}`);
  const login = `'{"host": "mail.example.com", "port": 465, "security": "tls", "username": "grace"}'`;
  await insert(
    'inbox',
    {
      ...{ id: inbox, email: `'grace-' || s.n || '@acme.example.com'`, from_name: `'Grace'`, smtp: login, imap: login },
      ...{ secrets: `''`, daily_limit: '40', min_gap_s: '90', max_gap_s: '300', timezone: `'UTC'` },
      ...{ status: `'disconnected'`, disconnected_reason: `'removed'`, connected_at: 's.at', disconnected_at: 's.at' },
    },
    `outreach_row s where s.n <= ${inboxes}`,
  );
  await insert(
    'campaign',
    {
      ...{ id: campaign, brand_id: of_brand, name: `'Bench'`, schedule: `'{}'`, max_per_domain_day: '3' },
      ...{ bounce_pause_bps: '300', reply_wait_days: '5', allow_risky: 'false', stop_for_company: 'true' },
      ...{ state: `'finished'`, launched_at: 's.at', finished_at: 's.at' },
    },
    'outreach_row s where s.n = 1',
  );
  await insert('prospect', {
    ...{
      id: id('fdi'),
      brand_id: of_brand,
      channel: `'website'`,
      key: `'blog' || s.n || '.com'`,
      name: `'Blog ' || s.n`,
    },
    ...{
      source: `'scan'`,
      stage: `'contacted'`,
      saved: 'true',
      email_status: `'found'`,
      sent: '1',
      last_sent_at: 's.at',
    },
  });
  await insert('email_address', {
    ...{ id: id('fea'), prospect_id: id('fdi'), address: `''`, address_hmac: hash(`'a' || s.n`), rank: '1' },
    ...{ domain_hmac: hash(`'d' || s.n`), source: `'page'`, verification: `'unknown'`, found_at: 's.at' },
  });
  await insert('sequence', {
    ...{ id: id('fsq'), campaign_id: campaign, brand_id: of_brand, prospect_id: id('fdi'), inbox_id: inbox },
    ...{ email_address_id: id('fea'), address_hmac: hash(`'a' || s.n`), state: `'completed'`, next_step: '1' },
    ...{ last_sent_at: 's.at', ended_at: 's.at' },
  });
  await insert('thread', {
    ...{ id: id('fth'), brand_id: of_brand, prospect_id: id('fdi'), inbox_id: inbox, campaign_id: campaign },
    ...{ sequence_id: id('fsq'), subject: `'Hello'`, messages: '1', last_message_at: 's.at' },
  });
  await insert('message', {
    ...{ id: id('fms'), thread_id: id('fth'), brand_id: of_brand, prospect_id: id('fdi'), campaign_id: campaign },
    ...{ sequence_id: id('fsq'), inbox_id: inbox, direction: `'outbound'`, purpose: `'sequence'`, state: `'sent'` },
    ...{ step_index: '0', subject: `'Hello'`, body_text: `repeat('Hello. ', 40)`, rfc_message_id: id('fms') },
    ...{ address_hmac: hash(`'a' || s.n`), sent_at: 's.at' },
    ...{ counted_on: day, campaign_counted_on: day, organization_counted_on: day },
  });
  const counted = `(select ${inbox} as inbox, ${day} as day, count(*) as count from outreach_row s group by 1, 2) as d`;
  const days = `(select ${day} as day, count(*) as count from outreach_row s group by 1) as d`;
  await insert('inbox_day', { inbox_id: 'd.inbox', day: 'd.day', sent: 'd.count' }, counted);
  await insert('campaign_day', { campaign_id: campaign, day: 'd.day', begun: 'd.count' }, days);
  await insert('organization_day', { day: 'd.day', sent: 'd.count' }, days);
  await insert('activity', {
    ...{ id: id('fac'), prospect_id: id('fdi'), kind: `'stage_changed'`, data: `'{}'` },
  });
  await insert('reveal', {
    ...{ prospect_id: id('fdi'), state: `'found'`, credit: `'taken'`, addresses: '1' },
    ...{ created_at: 's.at', finished_at: 's.at' },
  });
  await spend(client, brand.organization_id);
  // A deal and its first version name each other.
  await client.query(`
    with deal as (
      insert into recruitment.deal (organization_id, id, brand_id, prospect_id, program_id)
      select ${organization}, ${id('fde')}, ${of_brand}, ${id('fdi')}, '${brand.program_id}' from outreach_row s where s.n % 10 = 0
      returning organization_id, id
    )
    insert into recruitment.deal_version (organization_id, id, deal_id, version, rate_type, rate_value, currency)
    select d.organization_id, 'fdv_' || d.id, d.id, 1, 'percent', 2000, 'USD' from deal d`);
}

/** A credit of each reveal, behind the entries that there are. */
async function spend(client: pg.Client, organization_id: string): Promise<void> {
  await client.query(
    `insert into recruitment.credit_entry (
      organization_id, id, number, kind, amount, balance_before, balance, reason, prospect_id, created_at
    )
    select p.organization_id, ${id('fcr')}, coalesce(p.last_credit_number, 0) + s.n, 'spend', -1, p.credit_balance - s.n + 1, p.credit_balance - s.n,
      'reveal', ${id('fdi')}, s.at
    from recruitment.plan p, outreach_row s
    where p.organization_id = $1
    order by s.n`,
    [organization_id],
  );
  await client.query(
    `update recruitment.plan
    set (last_credit_number, credit_balance) = (select max(e.number), min(e.balance) from recruitment.credit_entry e where e.organization_id = $1)
    where organization_id = $1`,
    [organization_id],
  );
}

/** Puts the commissions of each partner into a payout of one batch. */
export async function payOut(client: pg.Client, organization_id: string): Promise<void> {
  const mine = `c.organization_id = '${organization_id}' and c.status = 'due' and c.payout_id is null`;
  const batch = `(select max(b.id) from program.payout_batch b where b.organization_id = '${organization_id}')`;
  await client.query('begin');
  await client.query(
    `delete from program.payout p where p.organization_id = '${organization_id}' and p.batch_id = ${batch}`,
  );
  await client.query(`
    update program.commission c set status = 'due'
    where c.organization_id = '${organization_id}' and c.status in ('pending', 'approved')`);
  await client.query(`
    insert into program.payout (
      organization_id, id, program_id, batch_id, partner_id, amount_minor, currency, status, method, period_start, period_end, due_at, commission_count, created_at, updated_at
    )
    select c.organization_id, 'pyt_due' || substr(c.partner_id, 9), c.program_id, ${batch}, c.partner_id, sum(c.amount_minor), c.currency, 'pending', 'paypal', now(), now(), now(), count(*), now(), now()
    from program.commission c
    where ${mine}
    group by c.organization_id, c.program_id, c.partner_id, c.currency`);
  await client.query(`update program.commission c set payout_id = 'pyt_due' || substr(c.partner_id, 9) where ${mine}`);
  await client.query('commit');
}
