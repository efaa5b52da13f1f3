-- The affiliate program: programs, partners, and what they share. Money is a bigint in minor units; rates are integers in basis points.
--
-- Every list is read by an index in its own order, whatever it is filtered by, and is counted without a look at the table. A filter that leaves
-- few rows has an index that begins with it, and carries the program along: (organization_id, field, id). One that leaves many (the time of
-- creation, a kind) is checked within the program's own index, which carries the field along.

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
  holding_period_days integer not null constraint program_holding_period_bounds check (holding_period_days between 0 and 180),
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
  payout_approval_required boolean not null default false,
  payout_limit_minor bigint constraint program_payout_limit_not_negative check (payout_limit_minor >= 0),
  payout_limits jsonb not null default '{}'::jsonb,
  min_payouts jsonb not null default '{}'::jsonb,
  reports_ready boolean not null default true,
  weekly_summary boolean not null default false,
  questions jsonb not null default '[]'::jsonb,
  partner_emails boolean not null default true,
  timezone text not null default 'UTC',
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id)
);
comment on table program.program is
  'A partner program of an organization: its currency, how long clicks count, when commissions mature, how partners are paid.';
comment on column program.program.payout_approval_required is 'A batch is sent once another person than the one who made it has approved it.';
comment on column program.program.payout_limit_minor is 'The most that is sent in a UTC day, in minor units of the program''s currency.';
comment on column program.program.payout_limits is 'The most that is sent in a UTC day in other currencies: {"EUR": 100000}.';
comment on column program.program.min_payouts is 'The minimum balance for a payout in other currencies than the program''s: {"EUR": 5000}.';
comment on column program.program.reports_ready is
  'Whether report_total holds the program''s facts. Until the task program/rebuild_reports has run, reports read the facts.';
comment on column program.program.weekly_summary is 'Whether the owner of the organization gets a summary of each week by mail.';
comment on column program.program.questions is 'What applicants are asked: [{key, label, kind, required, options}].';
comment on column program.program.timezone is 'The zone in which pages show times. Days are those of UTC everywhere.';
comment on column program.program.partner_emails is 'Whether partners are emailed about applications, referrals, rates and payout methods.';
comment on column program.program.changed_in is 'The transaction that wrote the row last.';
create index program_by_change on program.program (organization_id, changed_in);
create index program_by_organization on program.program (organization_id, id) include (created_at, status);
create unique index program_custom_domain_unique on program.program (lower(custom_domain));
call core.protect_tenant_table('program.program');

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
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  constraint partner_group_slug_unique unique (organization_id, program_id, slug),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.partner_group is 'A group of partners in a program, which rules can name. Each program has one default group.';
comment on column program.partner_group.deleted_at is 'Since when it is deleted: a job is moving its partners. Null: it is not.';
comment on column program.partner_group.changed_in is 'The transaction that wrote the row last.';
create index partner_group_by_change on program.partner_group (organization_id, changed_in);
create index partner_group_by_program on program.partner_group (organization_id, program_id, id) include (created_at) where deleted_at is null;
create unique index partner_group_one_default on program.partner_group (organization_id, program_id) where is_default;
call core.protect_tenant_table('program.partner_group');

create table program.tag (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  name text not null,
  name_key text not null generated always as (lower(name)) stored,
  color text not null constraint tag_color_shape check (color ~ '^#[0-9A-Fa-f]{6}$'),
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.tag is 'A label of partners in a program, which rules can name.';
comment on column program.tag.deleted_at is 'Since when it is deleted: a job is removing it from its partners. Null: it is not.';
comment on column program.tag.changed_in is 'The transaction that wrote the row last.';
create index tag_by_change on program.tag (organization_id, changed_in);
create index tag_by_program on program.tag (organization_id, program_id, id) include (created_at) where deleted_at is null;
create unique index tag_name_unique on program.tag (organization_id, program_id, name_key) where deleted_at is null;
call core.protect_tenant_table('program.tag');

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
  tax_form_status text not null default 'none'
    constraint partner_tax_form_status_known check (tax_form_status in ('none', 'submitted', 'verified', 'rejected')),
  tax_form_updated_at timestamptz(3),
  mailbox text,
  currency text collate "C" not null,
  invitation_token text collate "C",
  metadata jsonb,
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  inserted_in xid8 not null default pg_current_xact_id(),
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  foreign key (organization_id, group_id) references program.partner_group,
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.partner is 'A person or company that refers customers to a program and earns commissions.';
comment on column program.partner.email_key is 'The email with letter case ignored: unique in the program.';
comment on column program.partner.tax_form_status is 'Tax forms expose their status only.';
comment on column program.partner.mailbox is
  'The email with case, dots and plus tags folded, and googlemail.com as gmail.com: two partners of one mailbox are suspicious.';
comment on column program.partner.currency is 'The program''s, which never changes: every amount on the partner is in it.';
comment on column program.partner.inserted_in is 'The transaction that inserted the row: see program.fold.';
comment on column program.partner.changed_in is 'The transaction that wrote the row last.';
comment on column program.partner.invitation_token is 'The token of the invitation by which the partner came, as it was sent. It may be of nobody.';
create index partner_by_change on program.partner (organization_id, changed_in);
create index partner_inserted on program.partner (organization_id, inserted_in);
create index partner_by_group on program.partner (organization_id, group_id, id) include (program_id) where deleted_at is null;
create index partner_by_mailbox on program.partner (organization_id, program_id, mailbox) where deleted_at is null;
create index partner_by_program on program.partner (organization_id, program_id, id) include (created_at) where deleted_at is null;
create index partner_by_status on program.partner (organization_id, program_id, status, id) where deleted_at is null;
create unique index partner_email_unique on program.partner (organization_id, program_id, email_key) where deleted_at is null;
create unique index partner_handle_unique on program.partner (organization_id, program_id, handle) where deleted_at is null;
call core.protect_tenant_table('program.partner');

create table program.partner_tag (
  organization_id text collate "C" not null,
  partner_id text collate "C" not null,
  tag_id text collate "C" not null,
  primary key (organization_id, partner_id, tag_id),
  foreign key (organization_id, partner_id) references program.partner on delete cascade,
  foreign key (organization_id, tag_id) references program.tag on delete cascade
);
comment on table program.partner_tag is 'Which partners have which tags.';
create index partner_tag_by_tag on program.partner_tag (organization_id, tag_id, partner_id);
call core.protect_tenant_table('program.partner_tag');

create table program.handle_alias (
  organization_id text collate "C" not null,
  program_id text collate "C" not null,
  handle text collate "C" not null,
  partner_id text collate "C" not null,
  expires_at timestamptz(3) not null,
  primary key (organization_id, program_id, handle),
  foreign key (organization_id, partner_id) references program.partner on delete cascade,
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.handle_alias is
  'Former handles of partners: until they expire, clicks by them count for the partner, and nobody else can take them.';
create index handle_alias_by_partner on program.handle_alias (organization_id, partner_id);
call core.protect_tenant_table('program.handle_alias');

create table program.partner_visit (
  organization_id text collate "C" not null,
  partner_id text collate "C" not null,
  ip_hash text not null,
  user_agent text not null,
  seen_at timestamptz(3) not null,
  foreign key (organization_id, partner_id) references program.partner on delete cascade
);
comment on table program.partner_visit is 'Browsers that were a partner''s own: by them somebody signed up with the partner''s email.';
comment on column program.partner_visit.ip_hash is 'Keyed hash of the address; the address is never stored.';
create unique index partner_visit_once on program.partner_visit (organization_id, partner_id, ip_hash, md5(user_agent));
call core.protect_tenant_table('program.partner_visit');

create table program.application (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  group_id text collate "C",
  partner_id text collate "C",
  email text not null,
  email_key text not null generated always as (lower(email)) stored,
  answers jsonb,
  source text,
  status text not null default 'pending'
    constraint application_status_known check (status in ('pending', 'approved', 'rejected', 'withdrawn')),
  reviewed_by_user_id text collate "C",
  reviewed_at timestamptz(3),
  rejection_reason text,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  foreign key (organization_id, group_id) references program.partner_group,
  foreign key (organization_id, partner_id) references program.partner,
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.application is 'An application to become a partner, in the review queue until somebody decides.';
comment on column program.application.changed_in is 'The transaction that wrote the row last.';
create index application_by_change on program.application (organization_id, changed_in);
create index application_by_email on program.application (organization_id, program_id, email_key);
create index application_by_group on program.application (organization_id, group_id, id) include (program_id);
create index application_by_partner on program.application (organization_id, partner_id, id) include (program_id);
create index application_by_program on program.application (organization_id, program_id, id) include (created_at);
create index application_by_status on program.application (organization_id, program_id, status, id);
create unique index application_one_pending_a_partner on program.application (organization_id, partner_id) where status = 'pending';
call core.protect_tenant_table('program.application');

create table program.magic_link (
  organization_id text collate "C" not null,
  token_sha256 bytea not null,
  partner_id text collate "C" not null,
  expires_at timestamptz(3) not null,
  used_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, token_sha256),
  foreign key (organization_id, partner_id) references program.partner on delete cascade
);
comment on table program.magic_link is 'A sign-in link of a partner, good once and for 15 minutes. Only a hash of its token is stored.';
create index magic_link_by_partner on program.magic_link (organization_id, partner_id, created_at);
create unique index magic_link_by_token on program.magic_link (token_sha256);
call core.protect_tenant_table('program.magic_link');

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
  value_key text collate "C" not null generated always as (lower(value)) stored,
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  inserted_in xid8 not null default pg_current_xact_id(),
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  foreign key (organization_id, partner_id) references program.partner,
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.link is 'A partner''s tracking link. A deleted link attributes no clicks.';
comment on column program.link.url is 'The destination with the tracking parameter applied.';
comment on column program.link.rate_override is '{rate_type, rate_value}: wins over every rule.';
comment on column program.link.value_key is
  'The value with letter case ignored: what no other partner''s handle may be, under the program''s url_params.';
comment on column program.link.inserted_in is 'The transaction that inserted the row: see program.fold.';
comment on column program.link.changed_in is 'The transaction that wrote the row last.';
create index link_by_change on program.link (organization_id, changed_in);
create index link_inserted on program.link (organization_id, inserted_in);
create index link_by_partner on program.link (organization_id, partner_id, id) include (program_id) where deleted_at is null;
create index link_by_program on program.link (organization_id, program_id, id) include (created_at) where deleted_at is null;
create index link_by_short_slug on program.link (short_slug, deleted_at) where short_slug is not null;
create index link_by_value on program.link (organization_id, program_id, value_key) where deleted_at is null;
create unique index link_short_slug_unique on program.link (short_slug) where deleted_at is null;
create unique index link_value_key_unique on program.link (organization_id, program_id, param, value_key)
  where deleted_at is null;
call core.protect_tenant_table('program.link');

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
  inserted_in xid8 not null default pg_current_xact_id(),
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  foreign key (organization_id, group_id) references program.partner_group,
  foreign key (organization_id, partner_id) references program.partner,
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.coupon is 'A coupon that credits its partner with the sales it was used in.';
comment on column program.coupon.external_id is 'The processor''s promotion id: the only thing that a sale is matched on.';
comment on column program.coupon.inserted_in is 'The transaction that inserted the row: see program.fold.';
comment on column program.coupon.changed_in is 'The transaction that wrote the row last.';
create index coupon_by_change on program.coupon (organization_id, changed_in);
create index coupon_inserted on program.coupon (organization_id, inserted_in);
create index coupon_by_group on program.coupon (organization_id, group_id, id) include (program_id) where deleted_at is null;
create index coupon_by_partner on program.coupon (organization_id, partner_id, id) include (program_id) where deleted_at is null;
create index coupon_by_program on program.coupon (organization_id, program_id, id) include (created_at) where deleted_at is null;
create unique index coupon_code_unique on program.coupon (organization_id, program_id, code_key) where deleted_at is null;
create unique index coupon_external_id_unique on program.coupon (organization_id, program_id, external_id) where deleted_at is null;
call core.protect_tenant_table('program.coupon');

create table program.coupon_switch (
  organization_id text collate "C" not null,
  coupon_id text collate "C" not null,
  at timestamptz(3) not null,
  active boolean not null,
  primary key (organization_id, coupon_id, at),
  foreign key (organization_id, coupon_id) references program.coupon on delete cascade
);
comment on table program.coupon_switch is 'When a coupon was switched on or off: a sale goes by its own time, in whatever order both are told. Before the first row it was on.';
call core.protect_tenant_table('program.coupon_switch');

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
  of_activation boolean not null default false,
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.rule is 'How a sale earns. One rule pays per sale.';
comment on column program.rule.rate_value is 'percent: basis points; fixed: minor units of the program''s currency.';
comment on column program.rule.changed_in is 'The transaction that wrote the row last.';
comment on column program.rule.of_activation is 'Made by the activation of a deal; the next one of the partner deactivates it.';
create index rule_by_change on program.rule (organization_id, changed_in);
create index rule_by_program on program.rule (organization_id, program_id, id) include (created_at) where deleted_at is null;
create index rule_by_status on program.rule (organization_id, program_id, status, id) where deleted_at is null;
call core.protect_tenant_table('program.rule');
