-- The sums of ended spans, packed: see program.report_block. Quarters of a day are packed besides, from the facts. What folds and drops sums holds a
-- lock that is shared among those, and what packs them holds it alone: while it reads the sums of a span, nobody changes them.

create or replace function program.share_report_totals() returns void
language sql volatile
as $$
  select pg_advisory_xact_lock_shared(hashtextextended('program.report_total', 0))
$$;

create or replace function program.packed(width smallint, value numeric) returns bytea
language sql immutable parallel safe
return case width
  when 2 then int2send(coalesce(value, 0)::smallint)
  when 4 then int4send(coalesce(value, 0)::integer)
  else float8send(coalesce(value, 0)::float8)
end;

-- What is in a block: to those who keep it, a block with the same hash is the same.
create or replace function program.packed_hash(width smallint, variadic columns bytea[]) returns bytea
language sql immutable parallel safe
return (
  select sha256(
    int2send(width) || string_agg(int4send(coalesce(octet_length(c.bytes), -1)) || coalesce(c.bytes, ''::bytea), ''::bytea order by c.nth)
  )
  from unnest(columns) with ordinality as c (bytes, nth)
);

-- The sums of a span: of a quarter of a day those of its facts, less what is noted and not folded yet, which reports add to blocks as to sums.
create or replace function program.report_totals_of(slice integer, starts integer) returns table (
  key_id bigint, currency text,
  clicks bigint, referrals bigint, leads bigint, customers bigint, sales bigint,
  revenue_minor numeric, refunds_minor numeric, commissions_minor numeric, clawbacks_minor numeric, paid_minor numeric
)
language plpgsql stable
as $$
#variable_conflict use_column
declare
  s program.report_slice;
  first timestamptz := to_timestamp(starts * 60.0);
  after timestamptz;
begin
  select r.* into strict s from program.report_slice r where r.id = slice;
  if s.minutes <> program.quarter_minutes() then
    return query
      select
        t.key_id, t.currency, t.clicks, t.referrals, t.leads, t.customers, t.sales,
        t.revenue_minor, t.refunds_minor, t.commissions_minor, t.clawbacks_minor, t.paid_minor
      from program.report_total t
      where t.slice_id = slice and t.starts_in = starts;
    return;
  end if;
  after := first + make_interval(mins => s.minutes);
  return query execute format(
    $query$
      with fact as (
        select f.* from program.report_sums_by_%1$s($1, $2, $3, $4, $5, $6, $7, null) f
        union all
        select
          coalesce(c.%1$I, ''), c.currency, -c.sign * c.clicks, -c.sign * c.referrals, -c.sign * c.leads, -c.sign * c.customers, -c.sign * c.sales,
          -c.sign * c.revenue_minor, -c.sign * c.refunds_minor, -c.sign * c.commissions_minor, -c.sign * c.clawbacks_minor, -c.sign * c.paid_minor
        from program.unfolded_facts($1) c
        where c.program_id = $2 and c.at >= $3 and c.at < $4 and c.noun = any($7)
      )
      select
        k.id, f.currency, nullif(sum(f.clicks), 0)::bigint, nullif(sum(f.referrals), 0)::bigint, nullif(sum(f.leads), 0)::bigint, nullif(sum(f.customers), 0)::bigint, nullif(sum(f.sales), 0)::bigint,
        nullif(sum(f.revenue_minor), 0), nullif(sum(f.refunds_minor), 0), nullif(sum(f.commissions_minor), 0), nullif(sum(f.clawbacks_minor), 0), nullif(sum(f.paid_minor), 0)
      from fact f
      join program.report_key k on (k.organization_id, k.program_id, k.dimension, k.key) = ($1, $2, %1$L, f.key collate "C")
      group by 1, 2
      having num_nonnulls(
        nullif(sum(f.clicks), 0), nullif(sum(f.referrals), 0), nullif(sum(f.leads), 0), nullif(sum(f.customers), 0), nullif(sum(f.sales), 0),
        nullif(sum(f.revenue_minor), 0), nullif(sum(f.refunds_minor), 0), nullif(sum(f.commissions_minor), 0), nullif(sum(f.clawbacks_minor), 0), nullif(sum(f.paid_minor), 0)
      ) > 0
    $query$,
    s.dimension
  ) using
    s.organization_id, s.program_id, first, after,
    'clk_' || core.id_time_part(first - interval '1 hour'), 'clk_' || core.id_time_part(after + interval '1 hour'),
    program.report_nouns(s.dimension);
end
$$;

-- What the blocks of a span should be. `width` is null where it cannot be packed.
create or replace function program.report_blocks_of(slice integer, starts integer) returns setof program.report_block
language sql stable
as $$
  with total as materialized (
    select t.*, s.organization_id
    from program.report_totals_of(slice, starts) t
    join program.report_slice s on s.id = slice
  ),
  bound as materialized (
    select t.currency, min(t.key_id) as first_key, max(t.key_id) as last_key,
      greatest(
      max(abs(t.clicks)), max(abs(t.referrals)), max(abs(t.leads)), max(abs(t.customers)),
      max(abs(t.sales)), max(abs(t.revenue_minor)), max(abs(t.refunds_minor)), max(abs(t.commissions_minor)),
      max(abs(t.clawbacks_minor)), max(abs(t.paid_minor))
      ) as most
    from total t
    group by t.currency
  ),
  block as materialized (
    select
      b.currency, b.first_key, b.last_key,
      case
        when b.last_key - b.first_key >= 2147483648 or b.most >= 9007199254740992 then null
        when b.most < 32768 then 2
        when b.most < 2147483648 then 4
        else 8
      end::smallint as width
    from bound b
  )
  select
    slice, starts, p.*,
    program.packed_hash(
      p.width, p.keys, p.clicks, p.referrals, p.leads, p.customers, p.sales, p.revenue_minor, p.refunds_minor, p.commissions_minor, p.clawbacks_minor,
      p.paid_minor
    )
  from (
    select
      b.currency, min(t.organization_id) as organization_id, b.first_key, b.last_key, count(*)::integer as key_count, b.width,
      string_agg(int4send(case when b.width is not null then (t.key_id - b.first_key)::integer end), ''::bytea order by t.key_id) as keys,
      case when count(t.clicks) > 0 then string_agg(program.packed(b.width, t.clicks), ''::bytea order by t.key_id) end as clicks,
      case when count(t.referrals) > 0 then string_agg(program.packed(b.width, t.referrals), ''::bytea order by t.key_id) end as referrals,
      case when count(t.leads) > 0 then string_agg(program.packed(b.width, t.leads), ''::bytea order by t.key_id) end as leads,
      case when count(t.customers) > 0 then string_agg(program.packed(b.width, t.customers), ''::bytea order by t.key_id) end as customers,
      case when count(t.sales) > 0 then string_agg(program.packed(b.width, t.sales), ''::bytea order by t.key_id) end as sales,
      case when count(t.revenue_minor) > 0 then string_agg(program.packed(b.width, t.revenue_minor), ''::bytea order by t.key_id) end as revenue_minor,
      case when count(t.refunds_minor) > 0 then string_agg(program.packed(b.width, t.refunds_minor), ''::bytea order by t.key_id) end as refunds_minor,
      case when count(t.commissions_minor) > 0 then string_agg(program.packed(b.width, t.commissions_minor), ''::bytea order by t.key_id) end as commissions_minor,
      case when count(t.clawbacks_minor) > 0 then string_agg(program.packed(b.width, t.clawbacks_minor), ''::bytea order by t.key_id) end as clawbacks_minor,
      case when count(t.paid_minor) > 0 then string_agg(program.packed(b.width, t.paid_minor), ''::bytea order by t.key_id) end as paid_minor
    from block b
    join total t on t.currency = b.currency
    group by b.currency, b.first_key, b.last_key, b.width
  ) p
$$;

-- Notes of new slices of quarters that the quarters of their dimensions' sums are yet to be packed.
create or replace function program.unpack_quarters(slices integer[]) returns void
language sql volatile
as $$
  insert into program.report_unpacked (slice_id, starts_in, organization_id)
  select distinct q.id, t.starts_in + n.nth * q.minutes, q.organization_id
  from program.report_slice q
  join program.report_slice s
    on s.organization_id = q.organization_id and s.program_id = q.program_id and s.dimension = q.dimension and s.minutes = 1440
  join program.report_total t on t.slice_id = s.id
  cross join generate_series(0, 1440 / q.minutes - 1) as n (nth)
  where q.id = any(slices)
  order by 1, 2
  on conflict do nothing
$$;

-- Packs up to so many ended spans that have changed, and gives how many there were.
create or replace function program.pack_reports(most integer) returns bigint
language plpgsql volatile
as $$
declare
  span record;
  blocks program.report_block[];
  done bigint := 0;
begin
  perform pg_advisory_xact_lock(hashtextextended('program.report_total', 0));
  for span in
    select u.slice_id, u.starts_in
    from program.report_unpacked u
    join program.report_slice s on s.id = u.slice_id
    where not u.is_large and u.starts_in + s.minutes <= extract(epoch from now()) / 60
    order by u.starts_in desc, u.slice_id
    limit most
  loop
    blocks := array(select b from program.report_blocks_of(span.slice_id, span.starts_in) b);
    delete from program.report_block b where b.slice_id = span.slice_id and b.starts_in = span.starts_in;
    if exists (select from unnest(blocks) b where b.width is null) then
      update program.report_unpacked u set is_large = true where u.slice_id = span.slice_id and u.starts_in = span.starts_in;
    else
      insert into program.report_block select b.* from unnest(blocks) b;
      delete from program.report_unpacked u where u.slice_id = span.slice_id and u.starts_in = span.starts_in;
    end if;
    done := done + 1;
  end loop;
  return done;
end
$$;

-- Whether the blocks of spans that have not changed are what their sums are packed into. A clean database gives no row.
create or replace function program.audit_report_blocks()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  with block as (
    select b.*
    from program.report_block b
    where not exists (select from program.report_unpacked u where u.slice_id = b.slice_id and u.starts_in = b.starts_in)
  ),
  expected as (
    select e.*
    from (select distinct b.slice_id, b.starts_in from block b) b
    cross join lateral program.report_blocks_of(b.slice_id, b.starts_in) e
  )
  select 'the blocks of reports are the sums that they are made from', s.organization_id, s.program_id,
    format('the %s minutes from %s of %s', s.minutes, to_timestamp(coalesce(b.starts_in, e.starts_in) * 60.0), s.dimension)
  from block b
  full join expected e on (e.slice_id, e.starts_in, e.currency) = (b.slice_id, b.starts_in, b.currency)
  join program.report_slice s on s.id = coalesce(b.slice_id, e.slice_id)
  where b is distinct from e
$$;
comment on function program.audit_report_blocks() is 'The blocks of reports packed anew; a clean database gives no row.';
