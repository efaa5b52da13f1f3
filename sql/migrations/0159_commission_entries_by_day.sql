-- Runs outside a transaction: entries are written while the index is built.
-- By day and organization, in the place of ranges of pages: the first and the last day of an organization are found by it too.

create index concurrently if not exists commission_entry_by_day on program.commission_entry (organization_id, posted_at);

drop index concurrently if exists program.commission_entry_by_time;
