-- Views of payouts, and of what accountants reconcile them with.

create or replace view data.payout_batch with (security_barrier = true) as
select
  b.id,
  b.program_id,
  b.stage,
  b.cutoff,
  b.due_at,
  b.scheduled_for is not null as is_scheduled,
  b.approval_required,
  b.created_by_user_id,
  b.approved_by_user_id,
  b.approved_at,
  b.payouts + coalesce((
    select sum(r.payouts) from program.payout_batch_range r where r.organization_id = b.organization_id and r.batch_id = b.id
  ), 0)::bigint as payouts,
  b.generated_at,
  b.created_at,
  b.updated_at
from program.payout_batch b
where b.organization_id = (select data.organization_id())
  and b.deleted_at is null;
comment on view data.payout_batch is 'Selections of what is due, by a schedule or by hand: one payout for each partner and currency. Refused batches are left out.';
comment on column data.payout_batch.id is 'The batch (batch_).';
comment on column data.payout_batch.program_id is 'The program (prg_).';
comment on column data.payout_batch.stage is 'generating, awaiting_approval or ready.';
comment on column data.payout_batch.cutoff is 'It selects what was mature before this time.';
comment on column data.payout_batch.due_at is 'When its payouts are due.';
comment on column data.payout_batch.is_scheduled is 'Whether the schedule created it.';
comment on column data.payout_batch.approval_required is 'Whether another person has to approve it.';
comment on column data.payout_batch.created_by_user_id is 'Who created it (usr_). Null: the schedule, or a key of no user.';
comment on column data.payout_batch.approved_by_user_id is 'Who approved it (usr_). Null: nobody.';
comment on column data.payout_batch.approved_at is 'When it was approved. Null: not approved.';
comment on column data.payout_batch.payouts is 'How many payouts were created in it.';
comment on column data.payout_batch.generated_at is 'When all of its payouts had been created. Null: not yet.';
comment on column data.payout_batch.created_at is 'When it was recorded.';
comment on column data.payout_batch.updated_at is 'When it last changed.';

create or replace view data.payout with (security_barrier = true) as
select
  p.id,
  p.program_id,
  p.batch_id,
  p.partner_id,
  p.currency,
  p.amount_minor,
  p.fee_minor,
  p.status,
  p.livemode,
  p.method,
  p.external_id,
  case when (select data.sees_personal()) then p.destination_hint end as destination_hint,
  p.period_start,
  p.period_end,
  p.due_at,
  p.submitted_at,
  p.paid_at,
  p.failed_at,
  p.attempt,
  case when (select data.sees_personal()) then p.error_code else data.without_emails(p.error_code) end as error_code,
  case when (select data.sees_personal()) then p.error_message else data.without_emails(p.error_message) end as error_message,
  p.commission_count,
  p.created_at,
  p.updated_at
from program.payout p
where p.organization_id = (select data.organization_id())
  and p.deleted_at is null;
comment on view data.payout is 'What a partner is paid at once in one currency. Deleted payouts are left out. Its lines are the commissions with its payout_id.';
comment on column data.payout.id is 'The payout (pyt_).';
comment on column data.payout.program_id is 'The program (prg_).';
comment on column data.payout.batch_id is 'The batch (batch_).';
comment on column data.payout.partner_id is 'The partner (part_).';
comment on column data.payout.currency is 'ISO 4217 code of the currency of the amounts of this row.';
comment on column data.payout.amount_minor is 'What is paid: the sum of its commissions, in minor units.';
comment on column data.payout.fee_minor is 'The fee of the rail, in minor units. Null: not known.';
comment on column data.payout.status is 'pending, processing, paid or failed.';
comment on column data.payout.livemode is 'False: sent through a rail in test mode. It does not count as paid.';
comment on column data.payout.method is 'How it is paid: bank_transfer, wire, crypto, paypal, wise or stripe.';
comment on column data.payout.external_id is 'The rail''s id of the payment: reconcile by it. Null: none yet.';
comment on column data.payout.destination_hint is 'The last four characters of the account. Personal: null unless the login was made with --personal-data.';
comment on column data.payout.period_start is 'The start of the period that it covers.';
comment on column data.payout.period_end is 'The end of the period, which is not part of it.';
comment on column data.payout.due_at is 'When it is due.';
comment on column data.payout.submitted_at is 'When it was last sent to its rail. Null: not sent.';
comment on column data.payout.paid_at is 'When it settled. Null: not paid.';
comment on column data.payout.failed_at is 'When it failed. Null: it did not.';
comment on column data.payout.attempt is 'How many times it was sent.';
comment on column data.payout.error_code is 'Why it failed, such as account_closed. Null: it did not. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.payout.error_message is 'The same in words. Null: it did not fail. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.payout.commission_count is 'How many commissions are in it.';
comment on column data.payout.created_at is 'When it was recorded.';
comment on column data.payout.updated_at is 'When it last changed.';

create or replace view data.payout_statement with (security_barrier = true) as
select
  p.statement_number,
  p.id as payout_id,
  p.program_id,
  p.partner_id,
  p.period_start,
  p.period_end,
  p.currency,
  coalesce(c.earned_minor, 0) as earned_minor,
  coalesce(c.bonus_minor, 0) as bonus_minor,
  coalesce(c.clawed_back_minor, 0) as clawed_back_minor,
  p.amount_minor as total_minor,
  p.fee_minor,
  case when p.status = 'paid' and p.livemode then 'paid' else 'failed' end as status,
  case
    when p.status = 'paid' and p.livemode then p.paid_at
    -- It was returned, which clears the time: the entries of what it paid have it.
    else (
      select e.effective_at
      from program.commission_entry e
      where e.organization_id = p.organization_id and e.partner_id = p.partner_id and e.currency = p.currency
        and e.payout_id = p.id and e.cause = 'payout_paid'
      order by e.position desc
      limit 1
    )
  end as paid_at
from program.payout p
left join lateral (
  select
    sum(x.amount_minor) filter (where x.kind = 'sale')::bigint as earned_minor,
    sum(x.amount_minor) filter (where x.kind = 'bonus')::bigint as bonus_minor,
    sum(x.amount_minor) filter (where x.kind = 'clawback')::bigint as clawed_back_minor
  from (
    select k.kind, k.amount_minor
    from program.payout_commission l
    join program.commission k on k.organization_id = l.organization_id and k.id = l.commission_id
    where p.deleted_at is null and (p.livemode or p.status not in ('paid', 'failed'))
      and l.organization_id = p.organization_id and l.payout_id = p.id and k.deleted_at is null
    union all
    -- It was returned, and then deleted or retried in test mode: its commissions are in another payout, or in none. The entries say what it paid, once for each time.
    select y.kind, y.amount_minor
    from (
      select distinct e.commission_id, k.kind, -e.amount_minor as amount_minor
      from program.commission_entry e
      join program.commission k on k.organization_id = e.organization_id and k.id = e.commission_id
      where (p.deleted_at is not null or (not p.livemode and p.status in ('paid', 'failed'))) and e.organization_id = p.organization_id and e.partner_id = p.partner_id and e.currency = p.currency
        and e.payout_id = p.id and e.cause = 'payout_paid'
    ) as y
  ) as x
) c on true
where p.organization_id = (select data.organization_id())
  and p.statement_number is not null;
comment on view data.payout_statement is 'The numbered statements of payouts, one for each payout that was paid. The numbers of a program have no gaps within a year, and none is changed or given twice.';
comment on column data.payout_statement.statement_number is 'The number: the year (UTC) in which it was first paid, and where it stands in it, as in 2026-00042.';
comment on column data.payout_statement.payout_id is 'The payout (pyt_).';
comment on column data.payout_statement.program_id is 'The program (prg_). Each program has its own numbers.';
comment on column data.payout_statement.partner_id is 'The partner (part_).';
comment on column data.payout_statement.period_start is 'The start of the period that it covers.';
comment on column data.payout_statement.period_end is 'The end of the period, which is not part of it.';
comment on column data.payout_statement.currency is 'ISO 4217 code of the currency of the amounts of this row.';
comment on column data.payout_statement.earned_minor is 'Commissions for sales, in minor units.';
comment on column data.payout_statement.bonus_minor is 'Bonuses, in minor units.';
comment on column data.payout_statement.clawed_back_minor is 'Clawbacks: negative, in minor units.';
comment on column data.payout_statement.total_minor is 'What is paid, in minor units: the sum of the three.';
comment on column data.payout_statement.fee_minor is 'The fee of the rail, in minor units. Null: not known.';
comment on column data.payout_statement.status is 'paid, or failed if the payment was returned, even if the payout is retried or was deleted later.';
comment on column data.payout_statement.paid_at is 'When it settled, also if the payment was returned later. Of a payout that was returned and paid again: when it last settled.';

create or replace view data.payout_attempt with (security_barrier = true) as
select
  a.id,
  a.payout_id,
  a.number,
  a.program_id,
  a.rail,
  a.mode,
  a.currency,
  a.amount_minor,
  a.status,
  a.reference,
  case when (select data.sees_personal()) then a.error_code else data.without_emails(a.error_code) end as error_code,
  a.began_at,
  a.ended_at
from program.payout_attempt a
where a.organization_id = (select data.organization_id());
comment on view data.payout_attempt is 'Payouts as they were sent to their rails: one row for each attempt.';
comment on column data.payout_attempt.id is 'The idempotency key at the rail: the payout and the number.';
comment on column data.payout_attempt.payout_id is 'The payout (pyt_).';
comment on column data.payout_attempt.number is 'Which attempt of the payout it is.';
comment on column data.payout_attempt.program_id is 'The program (prg_).';
comment on column data.payout_attempt.rail is 'Where it was sent, such as paypal.';
comment on column data.payout_attempt.mode is 'test or live.';
comment on column data.payout_attempt.currency is 'ISO 4217 code of the currency of the amount.';
comment on column data.payout_attempt.amount_minor is 'What was sent, in minor units.';
comment on column data.payout_attempt.status is 'prepared, in_doubt, processing, paid, failed or returned.';
comment on column data.payout_attempt.reference is 'The rail''s id of the payment. Null: none.';
comment on column data.payout_attempt.error_code is 'Why it failed. Null: it did not. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.payout_attempt.began_at is 'When it was sent.';
comment on column data.payout_attempt.ended_at is 'When its outcome was known. Null: not yet.';

create or replace view data.paid_yearly with (security_barrier = true) as
select
  y.program_id,
  y.partner_id,
  y.year,
  y.currency,
  sum(y.paid_minor)::bigint as paid_minor,
  sum(y.fee_minor)::bigint as fee_minor,
  sum(y.payouts)::bigint as payouts,
  p.tax_form_status,
  p.country_code
from (
  select
    e.organization_id, e.program_id, e.partner_id, extract(year from e.effective_at at time zone 'UTC')::integer as year, e.currency,
    -sum(e.amount_minor) as paid_minor, 0 as fee_minor, 0 as payouts
  from program.commission_entry e
  where e.organization_id = (select data.organization_id()) and e.kind = 'paid'
  group by 1, 2, 3, 4, 5
  union all
  select
    o.organization_id, o.program_id, o.partner_id, extract(year from o.paid_at at time zone 'UTC')::integer, o.currency,
    0, coalesce(sum(o.fee_minor), 0), count(*)
  from program.payout o
  where o.organization_id = (select data.organization_id()) and o.status = 'paid' and o.livemode and o.deleted_at is null
  group by 1, 2, 3, 4, 5
) as y
left join program.partner p on p.organization_id = y.organization_id and p.id = y.partner_id
group by y.program_id, y.partner_id, y.year, y.currency, p.tax_form_status, p.country_code;
comment on view data.paid_yearly is 'What each partner was paid in a year (UTC), with the status of the tax form today. Includes deleted partners.';
comment on column data.paid_yearly.program_id is 'The program (prg_).';
comment on column data.paid_yearly.partner_id is 'The partner (part_).';
comment on column data.paid_yearly.year is 'The calendar year (UTC) of the payments. What was returned counts in the year of its return.';
comment on column data.paid_yearly.currency is 'ISO 4217 code of the currency of the amounts of this row.';
comment on column data.paid_yearly.paid_minor is 'What was paid, less what was returned, in minor units.';
comment on column data.paid_yearly.fee_minor is 'The fees of the rails, as far as they are known, in minor units.';
comment on column data.paid_yearly.payouts is 'How many payouts settled in the year and were not returned.';
comment on column data.paid_yearly.tax_form_status is 'none, submitted, verified or rejected.';
comment on column data.paid_yearly.country_code is 'ISO 3166-1 alpha-2 country code of the partner. Null: not given.';

create or replace view data.reconciliation with (security_barrier = true) as
select
  'sale' as object,
  s.external_charge_id as external_id,
  s.id,
  s.program_id,
  s.partner_id,
  s.currency,
  s.amount_minor,
  s.fee_minor,
  s.occurred_at
from program.sale s
where s.organization_id = (select data.organization_id()) and s.deleted_at is null
union all
select
  'refund', r.external_refund_id, r.id, r.program_id, s.partner_id, s.currency, -r.amount_minor, null, coalesce(r.refunded_at, r.created_at)
from program.refund r
left join program.sale s on s.organization_id = r.organization_id and s.id = r.sale_id
where r.organization_id = (select data.organization_id()) and r.deleted_at is null and r.reversed_at is null
union all
select 'payout', p.external_id, p.id, p.program_id, p.partner_id, p.currency, -p.amount_minor, p.fee_minor, p.paid_at
from program.payout p
where p.organization_id = (select data.organization_id()) and p.deleted_at is null and p.status = 'paid' and p.livemode
union all
select 'payout', a.reference, a.id, a.program_id, p.partner_id, a.currency, -a.amount_minor, null, a.ended_at
from program.payout_attempt a
join program.payout p on p.organization_id = a.organization_id and p.id = a.payout_id
cross join generate_series(0, coalesce(jsonb_array_length(a.bookings -> 'excess'), 0))
where a.organization_id = (select data.organization_id()) and a.status = 'paid' and a.excess_commission_id is not null;
comment on view data.reconciliation is 'Money that a processor or a rail moved, by its own id there, to compare with their statements: charges, refunds, settled payouts, and attempts that paid a payout a second time or after its deletion, once for each time. Returned payouts and reversed refunds are left out: their money left and came back.';
comment on column data.reconciliation.object is 'sale, refund or payout.';
comment on column data.reconciliation.external_id is 'The id at the processor or the rail. Null: not given.';
comment on column data.reconciliation.id is 'The sale (sale_), the refund (rfd_) or the payout (pyt_). Of money that was paid beyond a payout, the attempt (pyt_…-n).';
comment on column data.reconciliation.program_id is 'The program (prg_).';
comment on column data.reconciliation.partner_id is 'The partner (part_). Null: nobody.';
comment on column data.reconciliation.currency is 'ISO 4217 code of the currency of the amounts of this row.';
comment on column data.reconciliation.amount_minor is 'In minor units. Positive: money in. Refunds and payouts are negative.';
comment on column data.reconciliation.fee_minor is 'The fee that the processor or the rail took, in minor units. Null: not known. Of a sale: 0 if you sent none.';
comment on column data.reconciliation.occurred_at is 'When the charge, the refund or the payment happened.';
