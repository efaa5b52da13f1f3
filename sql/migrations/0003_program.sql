-- The affiliate program. Money is a bigint in minor units; rates are integers in basis points.

create schema program;
grant usage on schema program to rail_api;

create table program.program (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  name text not null,
  product_name text not null,
  website_url text not null,
  subdomain text not null constraint program_subdomain_unique unique,
  currency text not null constraint program_currency_is_iso check (currency ~ '^[A-Z]{3}$'),
  status text not null constraint program_status_known check (status in ('active', 'paused')),
  custom_domain text,
  terms_url text,
  terms_version text,
  cookie_days integer not null constraint program_cookie_days_bounds check (cookie_days between 1 and 365),
  url_params text[] not null,
  commission_on_net_revenue boolean not null,
  holding_period_days integer not null
    constraint program_holding_period_bounds check (holding_period_days between 0 and 180),
  min_payout_minor bigint not null constraint program_min_payout_not_negative check (min_payout_minor >= 0),
  payout_term text not null constraint program_payout_term_known check (payout_term in ('net_15', 'net_30', 'net_60')),
  payout_methods text[] not null,
  block_self_referrals boolean not null,
  blocked_countries text[] not null,
  require_tax_forms boolean not null,
  auto_payouts_enabled boolean not null,
  processor text,
  attribution text not null constraint program_attribution_known check (attribution in ('last_click', 'first_click')),
  application_required boolean not null,
  auto_enrol_customers boolean not null,
  default_rejection_reason text not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id)
);

create table program.partner_group (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  name text not null,
  slug text not null,
  description text,
  landing_url text,
  is_private boolean not null default false,
  is_default boolean not null default false,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint partner_group_slug_unique unique (organization_id, program_id, slug),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
create unique index partner_group_one_default on program.partner_group (organization_id, program_id) where is_default;

create table program.partner (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  group_id text collate "C",
  email text not null,
  email_key text not null generated always as (lower(email)) stored,
  first_name text,
  last_name text,
  display_name text,
  company_name text,
  website_url text,
  country_code text,
  language_code text,
  handle text collate "C" not null constraint partner_handle_shape check (handle ~ '^[a-z0-9][a-z0-9-]{0,30}[a-z0-9]$'),
  status text not null constraint partner_status_known check (status in ('pending', 'active', 'declined', 'suspended')),
  decline_reason text,
  suspension_reason text,
  min_payout_minor bigint constraint partner_min_payout_not_negative check (min_payout_minor >= 0),
  terms_accepted_at timestamptz(3),
  terms_version text,
  completed_onboarding boolean not null default false,
  email_first_referral boolean not null default true,
  email_new_referral boolean not null default true,
  email_payout_paid boolean not null default true,
  metadata jsonb,
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, group_id) references program.partner_group
);
comment on column program.partner.email_key is 'The email with letter case ignored: unique in the program.';
create unique index partner_email_unique on program.partner (organization_id, program_id, email_key) where deleted_at is null;
create unique index partner_handle_unique on program.partner (organization_id, program_id, handle) where deleted_at is null;
create index partner_by_program on program.partner (organization_id, program_id, id) where deleted_at is null;
create index partner_by_status on program.partner (organization_id, program_id, status, id) where deleted_at is null;
create index partner_by_group on program.partner (organization_id, group_id, id) where deleted_at is null;

create table program.link (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C" not null,
  param text not null,
  value text not null,
  destination_url text not null,
  url text not null,
  short_url text,
  short_slug text,
  short_domain text,
  label text,
  rate_override jsonb,
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, partner_id) references program.partner
);
comment on column program.link.url is 'The destination with the tracking parameter applied.';
comment on column program.link.rate_override is '{rate_type, rate_value}: wins over every rule.';
create unique index link_value_unique on program.link (organization_id, program_id, param, value) where deleted_at is null;
create unique index link_short_slug_unique on program.link (short_slug) where deleted_at is null;
create index link_by_program on program.link (organization_id, program_id, id) where deleted_at is null;
create index link_by_partner on program.link (organization_id, partner_id, id) where deleted_at is null;

create table program.click (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C" not null,
  link_id text collate "C",
  referral_id text collate "C",
  param text not null,
  value text not null,
  landing_url text not null,
  visitor_token text not null,
  ip_hash text,
  user_agent text,
  referer text,
  country text,
  device text,
  attributed_at timestamptz(3),
  created_at timestamptz(3) not null,
  primary key (organization_id, id)
) partition by range (id);
comment on table program.click is 'A visit through a partner''s link or handle. Partitioned by week.';
comment on column program.click.ip_hash is 'Keyed hash of the address; the address is never stored.';
comment on column program.click.attributed_at is 'When attribution judged the click; referral_id stays null where it earned no credit.';
create table program.click_default partition of program.click default;
create index click_by_program on program.click (organization_id, program_id, id);
create index click_by_partner on program.click (organization_id, program_id, partner_id, id);
create index click_by_link on program.click (organization_id, link_id, id);
create index click_by_referral on program.click (organization_id, referral_id, id);
call core.ensure_weekly_partitions('program.click', 'clk', now(), now() + interval '5 weeks');

create table program.referral (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C" not null,
  link_id text collate "C",
  visitor_token text,
  landing_url text,
  utm jsonb,
  tracked_by text not null constraint referral_tracked_by_known check (tracked_by in ('link', 'coupon', 'manual', 'api')),
  status text not null constraint referral_status_known check (status in ('visit', 'lead', 'converted')),
  expires_at timestamptz(3) not null,
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, id),
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, partner_id) references program.partner,
  foreign key (organization_id, link_id) references program.link
);
create unique index referral_one_a_visitor on program.referral (organization_id, program_id, visitor_token) where deleted_at is null;
create index referral_by_program on program.referral (organization_id, program_id, id) where deleted_at is null;
create index referral_by_partner on program.referral (organization_id, program_id, partner_id, id) where deleted_at is null;
create index referral_by_link on program.referral (organization_id, link_id, id) where deleted_at is null;
create index referral_by_status on program.referral (organization_id, program_id, status, id) where deleted_at is null;

create table program.coupon (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C",
  group_id text collate "C",
  code text not null,
  code_key text not null generated always as (lower(code)) stored,
  external_id text,
  active boolean not null default true,
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, partner_id) references program.partner,
  foreign key (organization_id, group_id) references program.partner_group
);
comment on column program.coupon.external_id is 'The processor''s promotion id: the only thing that a sale is matched on.';
create unique index coupon_code_unique on program.coupon (organization_id, program_id, code_key) where deleted_at is null;
create unique index coupon_external_id_unique on program.coupon (organization_id, program_id, external_id) where deleted_at is null;
create index coupon_by_program on program.coupon (organization_id, program_id, id) where deleted_at is null;
create index coupon_by_partner on program.coupon (organization_id, partner_id, id) where deleted_at is null;

create table program.customer (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C" not null,
  referral_id text collate "C",
  link_id text collate "C",
  coupon_id text collate "C",
  processor text,
  external_customer_id text,
  external_subscription_id text,
  email text,
  email_key text generated always as (lower(email)) stored,
  name text,
  identifier text,
  status text not null
    constraint customer_status_known check (status in ('lead', 'trial', 'active', 'cancelled', 'refunded', 'suspended')),
  tracked_by text not null constraint customer_tracked_by_known check (tracked_by in ('link', 'coupon', 'manual', 'api')),
  lead_at timestamptz(3),
  converted_at timestamptz(3),
  metadata jsonb,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, id),
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, partner_id) references program.partner,
  foreign key (organization_id, referral_id) references program.referral,
  foreign key (organization_id, link_id) references program.link,
  foreign key (organization_id, coupon_id) references program.coupon
);
create unique index customer_external_id_unique on program.customer (organization_id, program_id, external_customer_id);
create index customer_by_program on program.customer (organization_id, program_id, id);
create index customer_by_partner on program.customer (organization_id, program_id, partner_id, id);
create index customer_by_status on program.customer (organization_id, program_id, status, id);
create index customer_by_email on program.customer (organization_id, program_id, email_key);
create index customer_by_referral on program.customer (organization_id, referral_id);
create index customer_by_link on program.customer (organization_id, link_id, id);
create index customer_by_coupon on program.customer (organization_id, coupon_id, id);

create table program.sale (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C",
  customer_id text collate "C",
  link_id text collate "C",
  referral_id text collate "C",
  coupon_id text collate "C",
  external_charge_id text not null,
  external_subscription_id text,
  product_id text,
  amount_minor bigint not null constraint sale_amount_not_negative check (amount_minor >= 0),
  tax_minor bigint not null default 0 constraint sale_tax_not_negative check (tax_minor >= 0),
  shipping_minor bigint not null default 0 constraint sale_shipping_not_negative check (shipping_minor >= 0),
  fee_minor bigint not null default 0 constraint sale_fee_not_negative check (fee_minor >= 0),
  discount_minor bigint not null default 0 constraint sale_discount_not_negative check (discount_minor >= 0),
  net_amount_minor bigint not null constraint sale_net_amount_within_amount check (net_amount_minor between 0 and amount_minor),
  refunded_minor bigint not null default 0 constraint sale_refunds_within_amount check (refunded_minor between 0 and amount_minor),
  currency text not null constraint sale_currency_is_iso check (currency ~ '^[A-Z]{3}$'),
  status text not null default 'paid' constraint sale_status_known check (status in ('paid', 'partially_refunded', 'refunded')),
  is_first_sale boolean not null,
  occurred_at timestamptz(3) not null,
  refunded_at timestamptz(3),
  metadata jsonb,
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, id),
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, partner_id) references program.partner,
  foreign key (organization_id, customer_id) references program.customer,
  foreign key (organization_id, link_id) references program.link,
  foreign key (organization_id, referral_id) references program.referral,
  foreign key (organization_id, coupon_id) references program.coupon
);
comment on column program.sale.partner_id is 'Null: nobody was known to have brought it.';
create unique index sale_external_charge_unique on program.sale (organization_id, program_id, external_charge_id) where deleted_at is null;
create unique index sale_one_first_a_customer on program.sale (organization_id, customer_id) where is_first_sale and deleted_at is null;
create index sale_by_program on program.sale (organization_id, program_id, id) where deleted_at is null;
create index sale_by_partner on program.sale (organization_id, program_id, partner_id, id) where deleted_at is null;
create index sale_by_partner_and_time on program.sale (organization_id, partner_id, occurred_at) where deleted_at is null;
create index sale_by_customer on program.sale (organization_id, customer_id, id) where deleted_at is null;
create index sale_by_status on program.sale (organization_id, program_id, status, id) where deleted_at is null;

create table program.rule (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  name text not null,
  rate_type text not null constraint rule_rate_type_known check (rate_type in ('percent', 'fixed')),
  rate_value bigint not null constraint rule_rate_value_not_negative check (rate_value >= 0),
  priority integer not null,
  status text not null constraint rule_status_known check (status in ('active', 'inactive')),
  applies_to text not null constraint rule_applies_to_known check (applies_to in ('all', 'first', 'renewals')),
  partner_ids text[] not null,
  group_ids text[] not null,
  tag_ids text[] not null,
  link_ids text[] not null,
  product_ids text[] not null,
  duration_months integer,
  max_payments integer,
  min_sale_minor bigint,
  max_commission_minor bigint,
  tiers jsonb not null,
  tier_metric text constraint rule_tier_metric_known check (tier_metric in ('sales_count', 'revenue_minor')),
  starts_at timestamptz(3),
  ends_at timestamptz(3),
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.rule is 'How a sale earns. One rule pays per sale.';
comment on column program.rule.rate_value is 'percent: basis points; fixed: minor units of the program''s currency.';
create index rule_by_program on program.rule (organization_id, program_id, id) where deleted_at is null;

create table program.commission (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C" not null,
  customer_id text collate "C",
  sale_id text collate "C",
  rule_id text collate "C",
  payout_id text collate "C",
  kind text not null constraint commission_kind_known check (kind in ('sale', 'bonus', 'clawback')),
  clawback_of text collate "C",
  amount_minor bigint not null,
  base_amount_minor bigint,
  currency text not null constraint commission_currency_is_iso check (currency ~ '^[A-Z]{3}$'),
  rate_type text,
  rate_value bigint,
  max_commission_minor bigint,
  base_is_net boolean,
  edited_by_hand boolean not null default false,
  status text not null
    constraint commission_status_known check (status in ('pending', 'approved', 'due', 'paid', 'voided', 'rejected')),
  mature_at timestamptz(3) not null,
  approved_at timestamptz(3),
  paid_at timestamptz(3),
  voided_at timestamptz(3),
  void_reason text,
  note text,
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, id),
  constraint commission_sign check ((kind = 'clawback') = (amount_minor < 0) or amount_minor = 0),
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, partner_id) references program.partner,
  foreign key (organization_id, customer_id) references program.customer,
  foreign key (organization_id, sale_id) references program.sale,
  foreign key (organization_id, rule_id) references program.rule,
  foreign key (organization_id, clawback_of) references program.commission
);
comment on column program.commission.rate_value is 'The rate it was computed with, copied: later edits of the rule do not reach it.';
comment on column program.commission.max_commission_minor is 'The rule''s cap, copied with the rate.';
comment on column program.commission.base_is_net is 'Whether the rate applies to the net amount; copied from the program with the rate.';
comment on column program.commission.edited_by_hand is 'The amount was set by hand, until a refund or a correction computes it again.';
comment on column program.commission.mature_at is 'When the holding period ends; fixed at creation.';
create unique index commission_one_a_sale on program.commission (organization_id, sale_id, partner_id)
  where kind = 'sale' and deleted_at is null and status not in ('voided', 'rejected');
create index commission_by_program on program.commission (organization_id, program_id, id) where deleted_at is null;
create index commission_by_partner on program.commission (organization_id, program_id, partner_id, id) where deleted_at is null;
create index commission_by_status on program.commission (organization_id, program_id, status, id) where deleted_at is null;
create index commission_by_sale on program.commission (organization_id, sale_id);
create index commission_by_customer on program.commission (organization_id, customer_id, id);
create index commission_by_rule on program.commission (organization_id, customer_id, rule_id);
create index commission_by_maturity on program.commission (organization_id, program_id, mature_at, id) where deleted_at is null;
create index commission_maturing on program.commission (mature_at) where status in ('pending', 'approved') and deleted_at is null;

do $$
declare
  tenant_table text;
begin
  foreach tenant_table in array array['program', 'partner_group', 'partner', 'link', 'click', 'referral', 'coupon', 'customer', 'sale', 'rule', 'commission'] loop
    call core.protect_tenant_table(('program.' || tenant_table)::regclass);
  end loop;
end
$$;
