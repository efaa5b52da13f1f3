-- What happened to commissions, as entries that are only ever added: a commission shrinks in place when its sale is refunded, and what it was
-- worth at the end of a month could not be told afterwards. sql/live/program/commission_entry.sql writes them.
create table program.commission_entry (
  organization_id text collate "C" not null,
  commission_id text collate "C" not null,
  position bigint not null generated always as identity,
  program_id text collate "C" not null,
  partner_id text collate "C" not null,
  sale_id text collate "C",
  refund_id text collate "C",
  payout_id text collate "C",
  kind text not null
    constraint commission_entry_kind_known check (kind in ('earned', 'adjusted', 'clawed_back', 'voided', 'paid')),
  cause text not null,
  amount_minor bigint not null constraint commission_entry_not_zero check (amount_minor <> 0),
  currency text not null,
  effective_at timestamptz(3) not null,
  posted_at timestamptz(3) not null,
  primary key (organization_id, commission_id, position),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.commission_entry is
  'What happened to commissions, one row a change, never updated: earned, adjusted, clawed back, voided, paid. All but paid sum to what a commission counts; all sum to what is still owed of it.';
comment on column program.commission_entry.cause is 'Why: sale, bonus, sale_refunded, sale_corrected, edited_by_hand, payout_paid, the reason of a void, …';
comment on column program.commission_entry.amount_minor is 'Positive: owed to the partner. A payout is negative.';
comment on column program.commission_entry.effective_at is 'When it happened: the sale, the refund, the payment.';
comment on column program.commission_entry.posted_at is 'When it was written: entries of a month that has ended do not change.';
create index commission_entry_by_partner on program.commission_entry (organization_id, partner_id, currency, position);
create index commission_entry_by_time on program.commission_entry
  using brin (posted_at, ((posted_at at time zone 'UTC')::date)) with (autosummarize = on);
call core.protect_tenant_table('program.commission_entry');

-- Commissions of before: what each came to is one entry, at the time of its creation. What it was before a refund is not known.
lock table program.commission in share row exclusive mode;
insert into program.commission_entry
  (organization_id, commission_id, program_id, partner_id, sale_id, payout_id, kind, cause, amount_minor, currency, effective_at, posted_at)
select
  c.organization_id, c.id, c.program_id, c.partner_id, c.sale_id, case when e.kind = 'paid' then c.payout_id end,
  e.kind, e.cause, e.amount_minor, c.currency, e.effective_at, e.posted_at
from program.commission c
left join program.sale s on s.organization_id = c.organization_id and s.id = c.sale_id
cross join lateral (
  values
    (
      case when c.kind = 'clawback' then 'clawed_back' when c.clawback_of is not null then 'adjusted' else 'earned' end,
      case when c.clawback_of is not null or c.kind = 'clawback' then 'sale_corrected' else c.kind end,
      c.amount_minor,
      case when c.kind = 'sale' then coalesce(s.occurred_at, c.created_at) else c.created_at end,
      c.created_at,
      true
    ),
    (
      'voided',
      case when c.status = 'voided' then coalesce(c.void_reason, 'voided') when c.status = 'rejected' then 'rejected' else 'deleted' end,
      -c.amount_minor,
      coalesce(c.voided_at, c.deleted_at, c.updated_at),
      coalesce(c.voided_at, c.deleted_at, c.updated_at),
      c.deleted_at is not null or not program.is_counted(c.status)
    ),
    (
      'paid', 'payout_paid', -c.amount_minor, coalesce(c.paid_at, c.updated_at), coalesce(c.paid_at, c.updated_at),
      c.status = 'paid' and c.deleted_at is null
    )
) as e (kind, cause, amount_minor, effective_at, posted_at, happened)
where e.happened and e.amount_minor <> 0
order by e.posted_at, c.id;

-- Rollups by day read the rows of their days alone.
create index click_by_day on program.click using brin (((created_at at time zone 'UTC')::date)) with (autosummarize = on);
create index referral_by_day on program.referral using brin (((created_at at time zone 'UTC')::date)) with (autosummarize = on);
create index customer_by_day on program.customer
  using brin (((lead_at at time zone 'UTC')::date), ((converted_at at time zone 'UTC')::date)) with (autosummarize = on);
create index sale_by_day on program.sale using brin (((occurred_at at time zone 'UTC')::date)) with (autosummarize = on);
create index delivery_by_day on webhooks.delivery using brin (((created_at at time zone 'UTC')::date)) with (autosummarize = on);
