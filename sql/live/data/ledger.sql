-- The history of commissions, for accountants: entries are only added, so that the entries of a month do not change once the transactions of its end
-- are over.

create or replace view data.commission_entry with (security_barrier = true) as
select
  e.position,
  e.program_id,
  e.partner_id,
  e.commission_id,
  e.sale_id,
  e.refund_id,
  e.payout_id,
  e.kind,
  case when (select data.sees_personal()) then e.cause else data.without_emails(e.cause) end as cause,
  e.currency,
  e.amount_minor,
  e.effective_at,
  e.posted_at
from program.commission_entry e
where e.organization_id = (select data.organization_id());
comment on view data.commission_entry is 'What happened to commissions: one row for each change, never changed or deleted. For each commission, all kinds but paid sum to its counted_minor, and all kinds to what is still owed of it.';
comment on column data.commission_entry.position is 'Where it stands in the order of entries: larger is later. Gaps mean nothing.';
comment on column data.commission_entry.program_id is 'The program (prg_).';
comment on column data.commission_entry.partner_id is 'The partner (part_).';
comment on column data.commission_entry.commission_id is 'The commission (com_).';
comment on column data.commission_entry.sale_id is 'The sale (sale_). Null: a bonus.';
comment on column data.commission_entry.refund_id is 'The refund that caused it (rfd_). Null: none did.';
comment on column data.commission_entry.payout_id is 'The payout that paid it, or that was returned (pyt_). Null unless kind is paid.';
comment on column data.commission_entry.kind is 'earned, adjusted, clawed_back, voided or paid.';
comment on column data.commission_entry.cause is 'Why: sale, bonus, sale_refunded, sale_corrected, sale_deleted, edited_by_hand, deleted, rejected, reinstated, paid_twice, payout_paid, payout_returned, or the reason of a void. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.commission_entry.currency is 'ISO 4217 code of the currency of the amounts of this row.';
comment on column data.commission_entry.amount_minor is 'In minor units. Positive: owed to the partner. A payment is negative, and positive when it was returned.';
comment on column data.commission_entry.effective_at is 'When it happened: the sale, the refund, the payment. It may lie before posted_at.';
comment on column data.commission_entry.posted_at is 'When the transaction that wrote it began.';

create or replace view data.partner_ledger with (security_barrier = true) as
select
  l.position,
  l.program_id,
  l.partner_id,
  l.currency,
  l.posted_at,
  l.effective_at,
  l.kind,
  case when (select data.sees_personal()) then l.cause else data.without_emails(l.cause) end as cause,
  l.commission_id,
  l.sale_id,
  s.external_charge_id,
  l.refund_id,
  r.external_refund_id,
  l.payout_id,
  l.closing_minor - l.amount_minor as opening_minor,
  l.amount_minor,
  l.closing_minor
from (
  select
    e.organization_id,
    e.position,
    e.program_id,
    e.partner_id,
    e.currency,
    e.posted_at,
    e.effective_at,
    e.kind,
    e.cause,
    e.commission_id,
    e.sale_id,
    e.refund_id,
    e.payout_id,
    e.amount_minor,
    sum(e.amount_minor) over (
      partition by e.organization_id, e.program_id, e.partner_id, e.currency
      order by e.position
    )::bigint as closing_minor
  from program.commission_entry e
) as l
left join program.sale s on s.organization_id = l.organization_id and s.id = l.sale_id
left join program.refund r on r.organization_id = l.organization_id and r.id = l.refund_id
where l.organization_id = (select data.organization_id());
comment on view data.partner_ledger is 'The account of each partner and currency: every movement with the balance before and after it. Filter by partner_id.';
comment on column data.partner_ledger.position is 'Where it stands in the order of entries: larger is later.';
comment on column data.partner_ledger.program_id is 'The program (prg_).';
comment on column data.partner_ledger.partner_id is 'The partner (part_).';
comment on column data.partner_ledger.currency is 'ISO 4217 code of the currency of the amounts of this row.';
comment on column data.partner_ledger.posted_at is 'When the transaction that wrote it began. Read a month some minutes after its end; it then does not change.';
comment on column data.partner_ledger.effective_at is 'When it happened. It may lie before posted_at.';
comment on column data.partner_ledger.kind is 'earned, adjusted, clawed_back, voided or paid.';
comment on column data.partner_ledger.cause is 'Why: as in commission_entry.';
comment on column data.partner_ledger.commission_id is 'The commission (com_).';
comment on column data.partner_ledger.sale_id is 'The sale (sale_). Null: a bonus.';
comment on column data.partner_ledger.external_charge_id is 'The processor''s id of the charge. Null: a bonus.';
comment on column data.partner_ledger.refund_id is 'The refund that caused it (rfd_). Null: none did.';
comment on column data.partner_ledger.external_refund_id is 'The processor''s id of the refund. Null: none.';
comment on column data.partner_ledger.payout_id is 'The payout that paid it, or that was returned (pyt_). Null: none.';
comment on column data.partner_ledger.opening_minor is 'What the partner was owed before, in minor units.';
comment on column data.partner_ledger.amount_minor is 'The movement, in minor units.';
comment on column data.partner_ledger.closing_minor is 'What the partner is owed after it, in minor units. Negative: the partner owes.';

create or replace view data.partner_ledger_monthly with (security_barrier = true) as
with month as (
  select
    e.program_id,
    e.partner_id,
    e.currency,
    date_trunc('month', e.posted_at at time zone 'UTC')::date as month,
    sum(e.amount_minor) as movement,
    sum(e.amount_minor) filter (where e.kind = 'earned') as earned,
    sum(e.amount_minor) filter (where e.kind = 'adjusted') as adjusted,
    sum(e.amount_minor) filter (where e.kind = 'clawed_back') as clawed_back,
    sum(e.amount_minor) filter (where e.kind = 'voided') as voided,
    sum(e.amount_minor) filter (where e.kind = 'paid') as paid
  from program.commission_entry e
  where e.organization_id = (select data.organization_id())
  group by 1, 2, 3, 4
)
select
  m.program_id,
  m.partner_id,
  m.currency,
  m.month,
  (sum(m.movement) over account - m.movement)::bigint as opening_minor,
  coalesce(m.earned, 0)::bigint as earned_minor,
  coalesce(m.adjusted, 0)::bigint as adjusted_minor,
  coalesce(m.clawed_back, 0)::bigint as clawed_back_minor,
  coalesce(m.voided, 0)::bigint as voided_minor,
  coalesce(m.paid, 0)::bigint as paid_minor,
  (sum(m.movement) over account)::bigint as closing_minor
from month m
window account as (partition by m.program_id, m.partner_id, m.currency order by m.month);
comment on view data.partner_ledger_monthly is 'The account of each partner and currency by month (UTC) of posting. Months without movements have no row. Read a month some minutes after its end, because entries are dated by the start of their transaction; it then does not change.';
comment on column data.partner_ledger_monthly.program_id is 'The program (prg_).';
comment on column data.partner_ledger_monthly.partner_id is 'The partner (part_).';
comment on column data.partner_ledger_monthly.currency is 'ISO 4217 code of the currency of the amounts of this row.';
comment on column data.partner_ledger_monthly.month is 'The first day of the month (UTC) in which the movements were posted.';
comment on column data.partner_ledger_monthly.opening_minor is 'What the partner was owed at the start of the month, in minor units.';
comment on column data.partner_ledger_monthly.earned_minor is 'Earned, in minor units.';
comment on column data.partner_ledger_monthly.adjusted_minor is 'Adjusted by refunds, corrections and edits, in minor units.';
comment on column data.partner_ledger_monthly.clawed_back_minor is 'Clawed back of what was paid: negative, in minor units.';
comment on column data.partner_ledger_monthly.voided_minor is 'Voided, rejected or deleted: negative, in minor units.';
comment on column data.partner_ledger_monthly.paid_minor is 'Payments (negative) and returned payments (positive), in minor units.';
comment on column data.partner_ledger_monthly.closing_minor is 'What the partner was owed at the end of the month, in minor units.';
