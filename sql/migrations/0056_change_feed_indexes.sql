-- Runs outside a transaction: rows are written while the indexes are built. Only the one of clicks makes them wait, for one look at each.
-- What changed since a position, by organization. Rows of before the change feed have no transaction and are in none of them.

create index concurrently if not exists program_by_change on program.program (organization_id, changed_in) where changed_in is not null;

create index concurrently if not exists partner_group_by_change on program.partner_group (organization_id, changed_in) where changed_in is not null;

create index concurrently if not exists tag_by_change on program.tag (organization_id, changed_in) where changed_in is not null;

create index concurrently if not exists partner_by_change on program.partner (organization_id, changed_in) where changed_in is not null;

create index concurrently if not exists application_by_change on program.application (organization_id, changed_in) where changed_in is not null;

create index concurrently if not exists link_by_change on program.link (organization_id, changed_in) where changed_in is not null;

create index concurrently if not exists coupon_by_change on program.coupon (organization_id, changed_in) where changed_in is not null;

create index concurrently if not exists rule_by_change on program.rule (organization_id, changed_in) where changed_in is not null;

create index concurrently if not exists referral_by_change on program.referral (organization_id, changed_in) where changed_in is not null;

create index concurrently if not exists customer_by_change on program.customer (organization_id, changed_in) where changed_in is not null;

create index concurrently if not exists sale_by_change on program.sale (organization_id, changed_in) where changed_in is not null;

create index concurrently if not exists refund_by_change on program.refund (organization_id, changed_in) where changed_in is not null;

create index concurrently if not exists commission_by_change on program.commission (organization_id, changed_in) where changed_in is not null;

create index concurrently if not exists risk_flag_by_change on program.risk_flag (organization_id, changed_in) where changed_in is not null;

create index if not exists click_by_change on program.click (organization_id, changed_in) where changed_in is not null;
