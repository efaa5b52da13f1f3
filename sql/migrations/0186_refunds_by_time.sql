-- Runs outside a transaction: refunds are written while the index is built.
-- Below row-level security, Postgres looks up by an index what it knows to reveal nothing of other rows: it knows that of a case, and not of a
-- coalesce, so that the index before was never used and each report read all refunds.

create index concurrently if not exists refund_by_refund_time
  on program.refund (organization_id, program_id, (case when refunded_at is null then created_at else refunded_at end)) where deleted_at is null;

