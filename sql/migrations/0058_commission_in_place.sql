-- Runs outside a transaction. No index of commissions holds what a batch changes, but one that sums up ranges of pages: it does not keep a
-- commission from being changed in place (from Postgres 16 on).

create index concurrently if not exists commission_open on program.commission (organization_id, program_id, partner_id)
  where status in ('pending', 'approved', 'due') and deleted_at is null;

create index concurrently if not exists commission_changed on program.commission
  using brin ((changed_in::text::bigint)) with (autosummarize = on, pages_per_range = 16);

drop index concurrently if exists program.commission_payable;

drop index concurrently if exists program.commission_in_payout;

drop index concurrently if exists program.commission_by_change;
