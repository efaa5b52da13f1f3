-- Indexes by time of finer grain: a day of a middling program is a few hundred pages. Those by day were of no use: Postgres evaluates the day of a
-- time, which it does not know to be leakproof, behind row-level security alone.
drop index program.click_by_day, program.referral_by_day, program.customer_by_day, program.sale_by_day, webhooks.delivery_by_day;
drop index program.commission_entry_by_time, program.click_by_time, program.sale_by_time, program.referral_by_time, program.customer_by_time;
drop index program.commission_by_time, program.refund_by_time, webhooks.event_by_time, webhooks.delivery_by_time, webhooks.attempt_by_time;
create index click_by_time on program.click using brin (created_at) with (autosummarize = on, pages_per_range = 16);
create index referral_by_time on program.referral using brin (created_at) with (autosummarize = on, pages_per_range = 16);
create index customer_by_time on program.customer using brin (created_at) with (autosummarize = on, pages_per_range = 16);
create index sale_by_time on program.sale using brin (created_at, occurred_at) with (autosummarize = on, pages_per_range = 16);
create index commission_by_time on program.commission using brin (created_at) with (autosummarize = on, pages_per_range = 16);
create index refund_by_time on program.refund using brin (created_at) with (autosummarize = on, pages_per_range = 16);
create index commission_entry_by_time on program.commission_entry using brin (posted_at) with (autosummarize = on, pages_per_range = 16);
create index event_by_time on webhooks.event using brin (created_at) with (autosummarize = on, pages_per_range = 16);
create index delivery_by_time on webhooks.delivery using brin (created_at) with (autosummarize = on, pages_per_range = 16);
create index attempt_by_time on webhooks.attempt using brin (at) with (autosummarize = on, pages_per_range = 16);
