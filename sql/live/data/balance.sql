-- Balances of partners, now and at an earlier time.

create or replace view data.partner_balance with (security_barrier = true) as
select
  c.program_id,
  c.partner_id,
  c.currency,
  sum(c.counted_minor)::bigint as earned_minor,
  coalesce(sum(c.counted_minor) filter (where c.status in ('pending', 'approved')), 0)::bigint as pending_minor,
  coalesce(sum(c.counted_minor) filter (where c.status = 'due' and c.payout_id is null), 0)::bigint as due_minor,
  coalesce(sum(c.counted_minor) filter (where c.status = 'due' and c.payout_id is not null), 0)::bigint as in_payout_minor,
  coalesce(sum(c.counted_minor) filter (where c.status = 'paid'), 0)::bigint as paid_minor,
  coalesce(sum(c.counted_minor) filter (where c.status <> 'paid'), 0)::bigint as balance_minor,
  count(*) filter (where c.status = 'due' and c.payout_id is null) as due_commissions,
  min(c.mature_at) filter (where c.status in ('pending', 'approved')) as next_mature_at,
  coalesce(sum(c.counted_minor) filter (where c.status = 'on_hold'), 0)::bigint as on_hold_minor
from (
  select
    k.program_id, k.partner_id, k.currency, k.status, k.payout_id, k.mature_at,
    case when k.status in ('voided', 'rejected') then 0 else k.amount_minor end as counted_minor
  from program.commission k
  where k.organization_id = (select data.organization_id()) and k.deleted_at is null
) as c
group by c.program_id, c.partner_id, c.currency;
comment on view data.partner_balance is 'What each partner earned, was paid and is owed, by currency, as of now. Currencies never offset each other.';
comment on column data.partner_balance.program_id is 'The program (prg_).';
comment on column data.partner_balance.partner_id is 'The partner (part_).';
comment on column data.partner_balance.currency is 'ISO 4217 code of the currency of the amounts of this row.';
comment on column data.partner_balance.earned_minor is 'Commissions net of clawbacks, without voided and rejected ones, in minor units.';
comment on column data.partner_balance.pending_minor is 'Of earned_minor: in the holding period, in minor units.';
comment on column data.partner_balance.on_hold_minor is 'Of earned_minor: on hold, in minor units.';
comment on column data.partner_balance.due_minor is 'Of earned_minor: due and in no payout yet, in minor units. Negative: the partner owes.';
comment on column data.partner_balance.in_payout_minor is 'Of earned_minor: in a payout that has not settled, in minor units.';
comment on column data.partner_balance.paid_minor is 'Of earned_minor: paid, in minor units.';
comment on column data.partner_balance.balance_minor is 'Of earned_minor: not paid, in minor units. Negative: the partner owes.';
comment on column data.partner_balance.due_commissions is 'How many commissions are due and in no payout yet.';
comment on column data.partner_balance.next_mature_at is 'When the next commission leaves its holding period. Null: none is in it.';

-- Liabilities to partners at a time, by entries that were posted until then. Entries are dated by the start of their transaction, so that the result
-- changes no more once the transactions of that time have ended.
create or replace function data.payable_liability(as_of timestamptz)
returns table (program_id text, currency text, partners bigint, payable_minor bigint, receivable_minor bigint, net_minor bigint)
language sql stable security definer
set search_path = pg_catalog, pg_temp
begin atomic
  select
    b.program_id,
    b.currency,
    count(*) filter (where b.balance <> 0),
    coalesce(sum(b.balance) filter (where b.balance > 0), 0)::bigint,
    coalesce(-sum(b.balance) filter (where b.balance < 0), 0)::bigint,
    sum(b.balance)::bigint
  from (
    select e.program_id, e.partner_id, e.currency, sum(e.amount_minor) as balance
    from program.commission_entry e
    where e.organization_id = (select data.organization_id()) and e.posted_at < as_of
    group by e.program_id, e.partner_id, e.currency
  ) as b
  group by b.program_id, b.currency;
end;
comment on function data.payable_liability(timestamptz) is
  'What was owed to partners at a time, by program and currency, according to the entries that were posted before it. Read it some minutes after that time, because entries are dated by the start of their transaction. The columns are those of the view payable_liability.';

create or replace view data.payable_liability with (security_barrier = true) as
select
  b.program_id,
  b.currency,
  count(*) filter (where b.balance_minor <> 0) as partners,
  coalesce(sum(b.balance_minor) filter (where b.balance_minor > 0), 0)::bigint as payable_minor,
  coalesce(-sum(b.balance_minor) filter (where b.balance_minor < 0), 0)::bigint as receivable_minor,
  sum(b.balance_minor)::bigint as net_minor
from data.partner_balance b
group by b.program_id, b.currency;
comment on view data.payable_liability is 'What is owed to partners as of now, by program and currency, whether due or in the holding period. At an earlier time, in SQL: select * from data.payable_liability(''2026-10-01T00:00Z'').';
comment on column data.payable_liability.program_id is 'The program (prg_).';
comment on column data.payable_liability.currency is 'ISO 4217 code of the currency of the amounts of this row.';
comment on column data.payable_liability.partners is 'How many partners are owed something, or owe.';
comment on column data.payable_liability.payable_minor is 'What is owed to partners, in minor units.';
comment on column data.payable_liability.receivable_minor is 'What partners owe after clawbacks, in minor units.';
comment on column data.payable_liability.net_minor is 'payable_minor less receivable_minor.';
