-- Reports: what each write changes is noted, and a job folds the notes into sums (sql/live/program/report_*.sql). What there is already is
-- counted by the task program/rebuild_reports. Referrals keep the country of the click that made them, as they keep its page; sales are counted
-- by both.

alter table program.referral add column country text;
comment on column program.referral.country is 'The country of the click that made it. Null: not known.';

alter table program.program add column reports_ready boolean not null default false;
alter table program.program alter column reports_ready set default true;
comment on column program.program.reports_ready is
  'Whether report_total and report_change hold all of the program''s facts. Until the task program/rebuild_reports has run, reports read the facts.';

create table program.report_change (
  sign smallint not null,
  organization_id text collate "C" not null,
  program_id text collate "C" not null,
  noun text not null,
  id text collate "C" not null,
  sale_id text collate "C",
  at timestamptz(3) not null,
  partner_id text collate "C" not null,
  link_id text collate "C",
  coupon_id text collate "C",
  country text collate "C",
  landing_page text collate "C",
  product_id text collate "C",
  customer_id text collate "C",
  currency text collate "C" not null,
  clicks integer,
  referrals integer,
  leads integer,
  customers integer,
  sales integer,
  revenue_minor bigint,
  refunds_minor bigint,
  commissions_minor bigint,
  clawbacks_minor bigint,
  paid_minor bigint
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
comment on table program.report_change is
  'What was written since the last fold, as rows of report_fact that reports gain (sign 1) and lose (sign -1). Rows live for a minute.';
create index report_change_by_time on program.report_change (organization_id, program_id, at);

create table program.report_total (
  organization_id text collate "C" not null,
  program_id text collate "C" not null,
  dimension text collate "C" not null,
  minutes integer not null,
  starts_at timestamptz(0) not null,
  key text collate "C" not null,
  currency text collate "C" not null,
  clicks bigint,
  referrals bigint,
  leads bigint,
  customers bigint,
  sales bigint,
  revenue_minor numeric,
  refunds_minor numeric,
  commissions_minor numeric,
  clawbacks_minor numeric,
  paid_minor numeric,
  primary key (organization_id, program_id, dimension, minutes, starts_at, key, currency)
) with (fillfactor = 80);
comment on table program.report_total is
  'Sums of report_fact by a dimension''s key over a span of time, together with the notes in report_change. Null is 0.';
comment on column program.report_total.dimension is 'By which column of report_fact it is summed; empty: all together.';
comment on column program.report_total.minutes is 'How long the span is; it begins at starts_at. Spans of several lengths hold the same facts.';
comment on column program.report_total.key is 'The value of the dimension; empty: none.';
comment on column program.report_total.currency is 'The currency of the money; empty for what has none.';

call core.protect_tenant_table('program.report_change');
call core.protect_tenant_table('program.report_total');

-- Host and path of a URL. Long ones are cut, so that they fit into an index.
create or replace function program.landing_page(url text) returns text
language sql immutable parallel safe
return left(
  substr(split_part(split_part(url, '#', 1), '?', 1), position('://' in url) + case when position('://' in url) > 0 then 3 else 1 end), 500
);
comment on function program.landing_page(text) is 'Host and path of a URL, without query and fragment, at most 500 characters.';

-- An amount stands in one of the columns alone; the others are null. Which columns a filter or a report's rows need: a click has no coupon,
-- and what is not a sale or its money has neither product nor customer.
create or replace view program.report_fact with (security_invoker = true) as
select
  c.organization_id, c.program_id, 'click' as noun, c.id, null::text collate "C" as sale_id, c.created_at as at,
  c.partner_id, c.link_id, null::text collate "C" as coupon_id,
  c.country collate "C" as country, program.landing_page(c.landing_url) collate "C" as landing_page,
  null::text collate "C" as product_id, null::text collate "C" as customer_id, '' collate "C" as currency,
  1 as clicks, null::integer as referrals, null::integer as leads, null::integer as customers, null::integer as sales,
  null::bigint as revenue_minor, null::bigint as refunds_minor, null::bigint as commissions_minor,
  null::bigint as clawbacks_minor, null::bigint as paid_minor
from program.click c
union all
select
  r.organization_id, r.program_id, 'referral', r.id, null, r.created_at, r.partner_id, r.link_id, null,
  r.country, program.landing_page(r.landing_url) collate "C", null, null, '' collate "C", null, 1, null, null, null, null, null, null, null, null
from program.referral r
where r.deleted_at is null
union all
select
  c.organization_id, c.program_id, 'lead', c.id, null, c.lead_at, c.partner_id, c.link_id, c.coupon_id,
  r.country, program.landing_page(r.landing_url) collate "C", null, null, '' collate "C", null, null, 1, null, null, null, null, null, null, null
from program.customer c
left join program.referral r on r.organization_id = c.organization_id and r.id = c.referral_id
where c.deleted_at is null and c.lead_at is not null
union all
select
  c.organization_id, c.program_id, 'customer', c.id, null, c.converted_at, c.partner_id, c.link_id, c.coupon_id,
  r.country, program.landing_page(r.landing_url) collate "C", null, null, '' collate "C", null, null, null, 1, null, null, null, null, null, null
from program.customer c
left join program.referral r on r.organization_id = c.organization_id and r.id = c.referral_id
where c.deleted_at is null and c.converted_at is not null
union all
select
  s.organization_id, s.program_id, 'sale', s.id, s.id, s.occurred_at, s.partner_id, s.link_id, s.coupon_id,
  r.country, program.landing_page(r.landing_url) collate "C", s.product_id collate "C", s.customer_id, s.currency collate "C",
  null, null, null, null, 1, s.amount_minor, null, null, null, null
from program.sale s
left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
where s.deleted_at is null and s.partner_id is not null
union all
select
  f.organization_id, f.program_id, 'refund', f.id, s.id, coalesce(f.refunded_at, f.created_at), s.partner_id, s.link_id, s.coupon_id,
  r.country, program.landing_page(r.landing_url) collate "C", s.product_id collate "C", s.customer_id, s.currency collate "C",
  null, null, null, null, null, null, f.amount_minor, null, null, null
from program.refund f
join program.sale s on s.organization_id = f.organization_id and s.id = f.sale_id
left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
where f.deleted_at is null and s.deleted_at is null and s.partner_id is not null
union all
select
  c.organization_id, c.program_id, 'commission', c.id, s.id, s.occurred_at, c.partner_id, s.link_id, s.coupon_id,
  r.country, program.landing_page(r.landing_url) collate "C", s.product_id collate "C", c.customer_id, c.currency collate "C",
  null, null, null, null, null, null, null, c.amount_minor, null, null
from program.commission c
join program.sale s on s.organization_id = c.organization_id and s.id = c.sale_id
left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
where c.deleted_at is null and c.kind in ('sale', 'bonus') and program.is_counted(c.status)
union all
select
  c.organization_id, c.program_id, 'commission', c.id, null, c.created_at, c.partner_id, null, null,
  null, null, null, c.customer_id, c.currency collate "C", null, null, null, null, null, null, null, c.amount_minor, null, null
from program.commission c
where c.deleted_at is null and c.kind in ('sale', 'bonus') and program.is_counted(c.status) and c.sale_id is null
union all
select
  c.organization_id, c.program_id, 'clawback', c.id, s.id, c.created_at, c.partner_id, s.link_id, s.coupon_id,
  r.country, program.landing_page(r.landing_url) collate "C", s.product_id collate "C", c.customer_id, c.currency collate "C",
  null, null, null, null, null, null, null, null, -c.amount_minor, null
from program.commission c
left join program.sale s on s.organization_id = c.organization_id and s.id = c.sale_id
left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
where c.deleted_at is null and c.kind = 'clawback' and program.is_counted(c.status)
union all
select
  c.organization_id, c.program_id, 'paid', c.id, s.id, c.paid_at, c.partner_id, s.link_id, s.coupon_id,
  r.country, program.landing_page(r.landing_url) collate "C", s.product_id collate "C", c.customer_id, c.currency collate "C",
  null, null, null, null, null, null, null, null, null, c.amount_minor
from program.commission c
left join program.sale s on s.organization_id = c.organization_id and s.id = c.sale_id
left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
where c.deleted_at is null and c.status = 'paid' and c.paid_at is not null;
comment on view program.report_fact is
  'What reports count: clicks, referrals, leads, customers, sales, refunds, commissions, clawbacks and payments, each at its own time.';
grant select on program.report_fact to rail_api;

-- Written out in sql/live/program/report_change.sql, which runs behind this file.
create function program.report_rows() returns trigger language plpgsql as $$ begin return null; end $$;
create function program.report_clicks() returns trigger language plpgsql as $$ begin return null; end $$;
create function program.report_program() returns trigger language plpgsql as $$ begin return null; end $$;

create trigger report_deleted after delete on program.program for each row execute function program.report_program();

create trigger report_inserted after insert on program.click referencing new table as written
for each statement execute function program.report_clicks();
create trigger report_deleted after delete on program.click referencing old table as written
for each statement execute function program.report_clicks();
create trigger report_updated after update on program.click for each row
when ((old.program_id, old.created_at, old.partner_id, old.link_id, old.country, old.landing_url) is distinct from (new.program_id, new.created_at, new.partner_id, new.link_id, new.country, new.landing_url))
execute function program.report_clicks();

create trigger report_inserted after insert on program.referral for each row execute function program.report_rows();
create trigger report_deleting before delete on program.referral for each row execute function program.report_rows();
create trigger report_updating before update on program.referral for each row
when ((old.created_at, old.partner_id, old.link_id, old.country, old.landing_url, old.deleted_at) is distinct from (new.created_at, new.partner_id, new.link_id, new.country, new.landing_url, new.deleted_at))
execute function program.report_rows();
create trigger report_updated after update on program.referral for each row
when ((old.created_at, old.partner_id, old.link_id, old.country, old.landing_url, old.deleted_at) is distinct from (new.created_at, new.partner_id, new.link_id, new.country, new.landing_url, new.deleted_at))
execute function program.report_rows();

create trigger report_inserted after insert on program.customer for each row execute function program.report_rows();
create trigger report_deleting before delete on program.customer for each row execute function program.report_rows();
create trigger report_updating before update on program.customer for each row
when ((old.partner_id, old.link_id, old.coupon_id, old.referral_id, old.lead_at, old.converted_at, old.deleted_at) is distinct from (new.partner_id, new.link_id, new.coupon_id, new.referral_id, new.lead_at, new.converted_at, new.deleted_at))
execute function program.report_rows();
create trigger report_updated after update on program.customer for each row
when ((old.partner_id, old.link_id, old.coupon_id, old.referral_id, old.lead_at, old.converted_at, old.deleted_at) is distinct from (new.partner_id, new.link_id, new.coupon_id, new.referral_id, new.lead_at, new.converted_at, new.deleted_at))
execute function program.report_rows();

create trigger report_inserted after insert on program.sale for each row execute function program.report_rows();
create trigger report_deleting before delete on program.sale for each row execute function program.report_rows();
create trigger report_updating before update on program.sale for each row
when ((old.partner_id, old.customer_id, old.link_id, old.referral_id, old.coupon_id, old.product_id, old.amount_minor, old.currency, old.occurred_at, old.deleted_at) is distinct from (new.partner_id, new.customer_id, new.link_id, new.referral_id, new.coupon_id, new.product_id, new.amount_minor, new.currency, new.occurred_at, new.deleted_at))
execute function program.report_rows();
create trigger report_updated after update on program.sale for each row
when ((old.partner_id, old.customer_id, old.link_id, old.referral_id, old.coupon_id, old.product_id, old.amount_minor, old.currency, old.occurred_at, old.deleted_at) is distinct from (new.partner_id, new.customer_id, new.link_id, new.referral_id, new.coupon_id, new.product_id, new.amount_minor, new.currency, new.occurred_at, new.deleted_at))
execute function program.report_rows();

create trigger report_inserted after insert on program.refund for each row execute function program.report_rows();
create trigger report_deleting before delete on program.refund for each row execute function program.report_rows();
create trigger report_updating before update on program.refund for each row
when ((old.sale_id, old.amount_minor, old.refunded_at, old.created_at, old.deleted_at) is distinct from (new.sale_id, new.amount_minor, new.refunded_at, new.created_at, new.deleted_at))
execute function program.report_rows();
create trigger report_updated after update on program.refund for each row
when ((old.sale_id, old.amount_minor, old.refunded_at, old.created_at, old.deleted_at) is distinct from (new.sale_id, new.amount_minor, new.refunded_at, new.created_at, new.deleted_at))
execute function program.report_rows();

create trigger report_inserted after insert on program.commission for each row execute function program.report_rows();
create trigger report_deleting before delete on program.commission for each row execute function program.report_rows();
create trigger report_updating before update on program.commission for each row
when ((old.partner_id, old.customer_id, old.sale_id, old.kind, old.amount_minor, old.currency, old.status, old.created_at, old.paid_at, old.deleted_at) is distinct from (new.partner_id, new.customer_id, new.sale_id, new.kind, new.amount_minor, new.currency, new.status, new.created_at, new.paid_at, new.deleted_at))
execute function program.report_rows();
create trigger report_updated after update on program.commission for each row
when ((old.partner_id, old.customer_id, old.sale_id, old.kind, old.amount_minor, old.currency, old.status, old.created_at, old.paid_at, old.deleted_at) is distinct from (new.partner_id, new.customer_id, new.sale_id, new.kind, new.amount_minor, new.currency, new.status, new.created_at, new.paid_at, new.deleted_at))
execute function program.report_rows();
