-- Refunds are listed, newest first, of a program or of a sale, and say when the processor refunded. Until now that was when it was recorded.
alter table program.refund add column refunded_at timestamptz(3);
comment on column program.refund.refunded_at is 'When the charge was refunded. Null, of refunds of before: when it was recorded.';
create index refund_by_program on program.refund (organization_id, program_id, id) include (created_at) where deleted_at is null;
drop index program.refund_by_sale;
create index refund_by_sale on program.refund (organization_id, sale_id, id) include (program_id);
