-- The sums of a span of time in one row for each currency, for the dimensions of many keys: a report that ranks them reads a few large values
-- instead of a row for each key and span.

create table program.report_block (
  slice_id integer not null,
  starts_in integer not null,
  currency text collate "C" not null,
  organization_id text collate "C" not null,
  first_key bigint not null,
  last_key bigint not null,
  key_count integer not null,
  width smallint not null,
  keys bytea not null,
  clicks bytea,
  referrals bytea,
  leads bytea,
  customers bytea,
  sales bytea,
  revenue_minor bytea,
  refunds_minor bytea,
  commissions_minor bytea,
  clawbacks_minor bytea,
  paid_minor bytea,
  primary key (slice_id, starts_in, currency),
  constraint report_block_width_known check (width in (2, 4, 8))
);
comment on table program.report_block is
  'The rows of report_total of a span and a currency in one: where report_unpacked has the span, they have changed since.';
comment on column program.report_block.first_key is 'The smallest key_id; last_key is the largest.';
comment on column program.report_block.keys is 'The key_ids in their order, each less first_key, as integers of 4 bytes.';
comment on column program.report_block.width is
  'How the values are written, in the order of keys: integers of 2 or 4 bytes, or floats of 8. A column without any value is null.';
call core.protect_tenant_table('program.report_block');

-- Each value is read whole or not at all, and compresses badly.
do $$
declare
  name text;
begin
  for name in
    select a.attname from pg_attribute a where a.attrelid = 'program.report_block'::regclass and a.atttypid = 'bytea'::regtype
  loop
    execute format('alter table program.report_block alter column %I set storage external', name);
  end loop;
end
$$;

create table program.report_unpacked (
  slice_id integer not null,
  starts_in integer not null,
  organization_id text collate "C" not null,
  is_large boolean not null default false,
  primary key (slice_id, starts_in)
);
comment on table program.report_unpacked is 'The spans of report_total that have changed since they were packed into report_block.';
comment on column program.report_unpacked.is_large is 'It cannot be packed: a sum is beyond what is written exactly.';
call core.protect_tenant_table('program.report_unpacked');

insert into program.report_unpacked (slice_id, starts_in, organization_id)
select distinct t.slice_id, t.starts_in, t.organization_id
from program.report_total t
join program.report_slice s on s.id = t.slice_id
where s.dimension in ('partner_id', 'link_id', 'coupon_id', 'country', 'landing_page', 'customer_id')
order by 1, 2;

-- Quarters of days are packed from the facts.
insert into program.report_slice (organization_id, program_id, dimension, minutes)
select s.organization_id, s.program_id, s.dimension, 360
from program.report_slice s
where s.dimension in ('partner_id', 'link_id', 'coupon_id', 'country', 'landing_page', 'customer_id') and s.minutes = 1440
order by 1, 2, 3;

insert into program.report_unpacked (slice_id, starts_in, organization_id)
select q.id, d.starts_in + n.nth * 360, q.organization_id
from program.report_slice q
join program.report_slice s on (s.organization_id, s.program_id, s.dimension, s.minutes) = (q.organization_id, q.program_id, q.dimension, 1440)
cross join lateral (select distinct t.starts_in from program.report_total t where t.slice_id = s.id) d
cross join generate_series(0, 3) as n (nth)
where q.minutes = 360 and q.dimension <> ''
order by 1, 2;

drop index program.report_total_by_revenue;
