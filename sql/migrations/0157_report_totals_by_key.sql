-- Runs outside a transaction: sums are folded while the index is built.
-- What a report reads of the keys that it shows, and of a filter by key.

create index concurrently if not exists report_total_by_key on program.report_total (slice_id, key_id, starts_in);
