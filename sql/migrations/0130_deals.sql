-- Deals: what was agreed with a prospect. Versions of the terms are added and never changed.

create table recruitment.deal (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  brand_id text collate "C" not null,
  prospect_id text collate "C" not null,
  program_id text collate "C" not null,
  status text not null default 'draft' constraint deal_status_known
    check (status in ('draft', 'agreed', 'activating', 'active', 'cancelled')),
  version integer not null default 1,
  agreed_version integer,
  agreed_digest text,
  agreed_by text constraint deal_agreed_by_known check (agreed_by in ('member', 'prospect')),
  agreed_by_user_id text collate "C",
  agreed_at timestamptz(3),
  activated_by_user_id text collate "C",
  activated_by_member_id text collate "C",
  activated_at timestamptz(3),
  partner_id text collate "C",
  rule_id text collate "C",
  linked_existing boolean,
  bonus_id text collate "C",
  cancelled_at timestamptz(3),
  last_error text constraint deal_last_error_known check (
    last_error in (
      'no_address', 'partner_pending', 'partner_declined', 'partner_suspended', 'coupon_taken', 'group_not_found', 'currency_mismatch'
    )
  ),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint deal_agreement_is_whole check (
    (agreed_version is null) = (agreed_digest is null)
    and (agreed_version is null) = (agreed_by is null)
    and (agreed_version is null) = (agreed_at is null)
  ),
  constraint deal_agreement_follows_status check (
    case status when 'draft' then agreed_version is null when 'cancelled' then true else agreed_version is not null end
  ),
  constraint deal_active_has_partner check (
    (status = 'active') = (partner_id is not null)
    and (partner_id is null) = (rule_id is null)
    and (partner_id is null) = (linked_existing is null)
    and (partner_id is null) = (activated_at is null)
  ),
  constraint deal_cancelled_has_time check ((status = 'cancelled') = (cancelled_at is not null)),
  constraint deal_prospect foreign key (organization_id, prospect_id)
    references recruitment.prospect (organization_id, id) on delete cascade,
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table recruitment.deal is 'What was agreed with a prospect for a program; at most one of them is open.';
comment on column recruitment.deal.version is 'The last version of the terms.';
comment on column recruitment.deal.agreed_digest is 'Of the agreed version: the reference to it holds its terms as they are.';
comment on column recruitment.deal.partner_id is 'The partner of the affiliate program service, as rule_id and bonus_id (the upfront fee). They may be deleted there.';
comment on column recruitment.deal.activated_by_user_id is 'Who asked for the activation last.';
create unique index deal_one_open on recruitment.deal (organization_id, prospect_id, program_id)
  where status in ('draft', 'agreed', 'activating');
create index deal_by_prospect on recruitment.deal (organization_id, prospect_id, id);
create index deal_by_brand on recruitment.deal (organization_id, brand_id, id);
create index deal_by_program on recruitment.deal (organization_id, program_id, id);
create index deal_by_partner on recruitment.deal (organization_id, partner_id, id) where partner_id is not null;

create table recruitment.deal_version (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  deal_id text collate "C" not null,
  version integer not null constraint deal_version_positive check (version > 0),
  rate_type text not null constraint deal_version_rate_type_known check (rate_type in ('percent', 'fixed')),
  rate_value bigint not null,
  currency text not null constraint deal_version_currency_form check (currency ~ '^[A-Z]{3}$'),
  recurring_months integer constraint deal_version_recurring_months_positive check (recurring_months > 0),
  group_id text collate "C",
  coupon_code text,
  upfront_fee_minor bigint constraint deal_version_upfront_fee_positive check (upfront_fee_minor > 0),
  starts_on date,
  ends_on date,
  text text,
  created_by_user_id text collate "C",
  created_at timestamptz(3) not null default now(),
  digest text not null generated always as (
    md5(
      rate_type || ' ' || rate_value::text || ' ' || currency || ' ' || coalesce(recurring_months::text, '') || ' '
        || coalesce(group_id, '') || ' ' || coalesce(upfront_fee_minor::text, '') || ' '
        || coalesce((starts_on - date '2000-01-01')::text, '') || ' ' || coalesce((ends_on - date '2000-01-01')::text, '') || ' '
        || coalesce(md5(coupon_code), '') || ' ' || coalesce(md5(text), '')
    )
  ) stored,
  primary key (organization_id, id),
  constraint deal_version_unique unique (organization_id, deal_id, version),
  constraint deal_version_digest_unique unique (organization_id, deal_id, version, digest),
  constraint deal_version_rate_in_bounds check (rate_value >= 0 and (rate_type <> 'percent' or rate_value <= 1000000)),
  constraint deal_version_dates_in_order check (starts_on <= ends_on),
  constraint deal_version_deal foreign key (organization_id, deal_id)
    references recruitment.deal (organization_id, id) on delete cascade
);
comment on table recruitment.deal_version is 'The terms of a deal, each time that they were changed. Rows are added, and never changed.';
comment on column recruitment.deal_version.rate_value is 'percent: basis points; fixed: minor units of the currency.';
comment on column recruitment.deal_version.digest is 'Of the terms, for the reference from the deal that agreed on them.';

-- Whoever changed agreed terms would change their digest, which the deal refers to.
alter table recruitment.deal
  add constraint deal_agreed_terms foreign key (organization_id, id, agreed_version, agreed_digest)
    references recruitment.deal_version (organization_id, deal_id, version, digest),
  add constraint deal_last_version foreign key (organization_id, id, version)
    references recruitment.deal_version (organization_id, deal_id, version) deferrable initially deferred;

call core.protect_tenant_table('recruitment.deal');
call core.protect_tenant_table('recruitment.deal_version');

-- The service itself can add versions, and neither change nor remove one; they go with their deal.
create policy deal_version_is_kept on recruitment.deal_version as restrictive for update using (false);
create policy deal_version_stays on recruitment.deal_version as restrictive for delete using (false);
