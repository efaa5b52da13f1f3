-- The plan of an organization in the recruitment service, and its ledger of credits.

create schema recruitment;
grant usage on schema recruitment to rail_api;

create table recruitment.credit_entry (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  number bigint not null constraint credit_entry_number_positive check (number > 0),
  previous_number bigint generated always as (nullif(number - 1, 0)) stored,
  kind text not null,
  amount bigint not null,
  balance_before bigint not null,
  balance bigint not null,
  reason text not null,
  search_id text collate "C",
  scan_id text collate "C",
  prospect_id text collate "C",
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint credit_entry_number_unique unique (organization_id, number),
  constraint credit_entry_balance_unique unique (organization_id, number, balance),
  constraint credit_entry_kind_known check (
    case kind
      when 'grant' then amount > 0
      when 'refund' then amount > 0
      when 'spend' then amount < 0
      when 'adjust' then amount <> 0
      else false
    end
  ),
  constraint credit_entry_adds_up check (balance = balance_before + amount),
  constraint credit_entry_begins_at_zero check (number > 1 or balance_before = 0),
  constraint credit_entry_follows_previous foreign key (organization_id, previous_number, balance_before)
    references recruitment.credit_entry (organization_id, number, balance)
);
comment on table recruitment.credit_entry is
  'The ledger of credits: each entry begins with the balance that the one before it left, so that the ledger balances at every commit.';
comment on column recruitment.credit_entry.number is 'Of the organization, without gaps: entries are written under the lock of its plan.';

create table recruitment.plan (
  organization_id text collate "C" primary key references core.organization on delete cascade,
  name text not null default 'enterprise' constraint plan_name_known check (name in ('starter', 'grow', 'enterprise')),
  spending_ceiling_minor bigint constraint plan_spending_ceiling_not_negative check (spending_ceiling_minor >= 0),
  credit_month date,
  last_credit_number bigint,
  credit_balance bigint not null default 0,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint plan_balance_begins_at_zero check (last_credit_number is not null or credit_balance = 0),
  constraint plan_balance_is_of_last_entry foreign key (organization_id, last_credit_number, credit_balance)
    references recruitment.credit_entry (organization_id, number, balance)
);
comment on table recruitment.plan is 'What an organization may do in the recruitment service. Without a row: enterprise, the default.';
comment on column recruitment.plan.credit_month is 'The first day (UTC) of the month whose credits were granted.';
comment on column recruitment.plan.spending_ceiling_minor is 'What searches may spend in a month, in minor units. Null: any amount.';

call core.protect_tenant_table('recruitment.credit_entry');
call core.protect_tenant_table('recruitment.plan');

-- Endpoints of a product that the plan no longer includes stay, and receive what had happened by then.
alter table webhooks.endpoint add column listens_until bigint;
comment on column webhooks.endpoint.listens_until is
  'The position in the event log up to which it receives; null: it goes on. Set while the plan does not include webhooks.';
