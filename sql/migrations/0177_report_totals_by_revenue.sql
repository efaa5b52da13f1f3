-- Runs outside a transaction: sums are folded while the index is built.
-- Reports rank keys by revenue unless they are told otherwise: of many keys that were visited, few have any.

create index concurrently if not exists report_total_by_revenue on program.report_total (slice_id, starts_in)
include (key_id, currency, revenue_minor) where revenue_minor is not null;
