-- Counts of a program, partner, link, coupon or group, without counting rows: see fold.sql.

-- The counts of each row, from the row alone: Postgres inlines the function. To count another table: a function and a part of the view here,
-- `inserted_in` and its index in a migration, and the triggers below.

-- The subject of what a partner sold in a calendar month (UTC), on which tiers depend.
create or replace function program.month_of(partner text, at timestamptz) returns text
language sql stable
as $$
  select partner || to_char(at at time zone 'UTC', ' YYYY-MM')
$$;

create or replace function program.counts_of(r program.click) returns setof program.tally_note
language sql stable
as $$
  select r.organization_id, s.subject_id, 'click', '', 1::bigint, 0::bigint, r.inserted_in
  from (values (r.program_id), (r.partner_id), (r.link_id)) as s (subject_id)
  where not r.is_bot and s.subject_id is not null
$$;

create or replace function program.counts_of(r program.partner) returns setof program.tally_note
language sql stable
as $$
  select r.organization_id, s.subject_id, 'partner', r.status, 1::bigint, 0::bigint, r.inserted_in
  from (values (r.program_id), (r.group_id)) as s (subject_id)
  where r.deleted_at is null and s.subject_id is not null
$$;

create or replace function program.counts_of(r program.link) returns setof program.tally_note
language sql stable
as $$
  select r.organization_id, r.program_id, 'link', '', 1::bigint, 0::bigint, r.inserted_in
  where r.deleted_at is null
$$;

create or replace function program.counts_of(r program.coupon) returns setof program.tally_note
language sql stable
as $$
  select r.organization_id, r.program_id, 'coupon', '', 1::bigint, 0::bigint, r.inserted_in
  where r.deleted_at is null
$$;

create or replace function program.counts_of(r program.referral) returns setof program.tally_note
language sql stable
as $$
  select r.organization_id, s.subject_id, 'referral', '', 1::bigint, 0::bigint, r.inserted_in
  from (values (r.program_id), (r.partner_id), (r.link_id)) as s (subject_id)
  where r.deleted_at is null and s.subject_id is not null
$$;

create or replace function program.counts_of(r program.customer) returns setof program.tally_note
language sql stable
as $$
  select r.organization_id, s.subject_id, 'customer', '', 1::bigint, 0::bigint, r.inserted_in
  from (values (r.program_id), (r.partner_id), (r.link_id), (r.coupon_id)) as s (subject_id)
  where r.deleted_at is null and s.subject_id is not null
$$;

create or replace function program.counts_of(r program.sale) returns setof program.tally_note
language sql stable
as $$
  select r.organization_id, s.subject_id, 'sale', r.currency, 1::bigint, r.amount_minor::bigint, r.inserted_in
  from (values (r.program_id), (program.month_of(r.partner_id, r.occurred_at))) as s (subject_id)
  where r.deleted_at is null and s.subject_id is not null
$$;

create or replace function program.counts_of(r program.commission) returns setof program.tally_note
language sql stable
as $$
  select
    r.organization_id, s.subject_id, 'commission',
    r.currency || case when r.status = 'paid' then ' paid' when program.is_counted(r.status) then '' else ' uncounted' end, 1::bigint, case when program.is_counted(r.status) then r.amount_minor else 0 end, r.inserted_in
  from (values (r.program_id), (r.partner_id)) as s (subject_id)
  where r.deleted_at is null and s.subject_id is not null
$$;

create or replace view program.counted with (security_invoker = true) as
select c.*, r.id from program.click r cross join lateral program.counts_of(r) c
union all
select c.*, r.id from program.partner r cross join lateral program.counts_of(r) c
union all
select c.*, r.id from program.link r cross join lateral program.counts_of(r) c
union all
select c.*, r.id from program.coupon r cross join lateral program.counts_of(r) c
union all
select c.*, r.id from program.referral r cross join lateral program.counts_of(r) c
union all
select c.*, r.id from program.customer r cross join lateral program.counts_of(r) c
union all
select c.*, r.id from program.sale r cross join lateral program.counts_of(r) c
union all
select c.*, r.id from program.commission r cross join lateral program.counts_of(r) c;

-- Notes changes of a row's counts, and its removal.
create or replace function program.note_counts() returns trigger
language plpgsql
as $$
declare
  sign constant integer := case tg_when when 'BEFORE' then -1 else 1 end;
  counted record;
begin
  if tg_when = 'BEFORE' then counted := old; else counted := new; end if;
  insert into program.tally_note (organization_id, subject_id, noun, kind, rows, amount_minor, inserted_in)
  select c.organization_id, c.subject_id, c.noun, c.kind, sign * c.rows, sign * c.amount_minor, c.inserted_in
  from program.counts_of(counted) c;
  if tg_when = 'AFTER' then return null; end if;
  if tg_op = 'DELETE' then return old; end if;
  return new;
end
$$;
create or replace trigger counts_deleted before delete on program.click for each row execute function program.note_counts();
create or replace trigger counts_deleted before delete on program.partner for each row execute function program.note_counts();
create or replace trigger counts_updating before update of group_id, status, deleted_at on program.partner for each row execute function program.note_counts();
create or replace trigger counts_updated after update of group_id, status, deleted_at on program.partner for each row execute function program.note_counts();
create or replace trigger counts_deleted before delete on program.link for each row execute function program.note_counts();
create or replace trigger counts_updating before update of deleted_at on program.link for each row execute function program.note_counts();
create or replace trigger counts_updated after update of deleted_at on program.link for each row execute function program.note_counts();
create or replace trigger counts_deleted before delete on program.coupon for each row execute function program.note_counts();
create or replace trigger counts_updating before update of deleted_at on program.coupon for each row execute function program.note_counts();
create or replace trigger counts_updated after update of deleted_at on program.coupon for each row execute function program.note_counts();
create or replace trigger counts_deleted before delete on program.referral for each row execute function program.note_counts();
create or replace trigger counts_updating before update of partner_id, link_id, deleted_at on program.referral for each row execute function program.note_counts();
create or replace trigger counts_updated after update of partner_id, link_id, deleted_at on program.referral for each row execute function program.note_counts();
create or replace trigger counts_deleted before delete on program.customer for each row execute function program.note_counts();
create or replace trigger counts_updating before update of partner_id, link_id, coupon_id, deleted_at on program.customer for each row execute function program.note_counts();
create or replace trigger counts_updated after update of partner_id, link_id, coupon_id, deleted_at on program.customer for each row execute function program.note_counts();
create or replace trigger counts_deleted before delete on program.sale for each row execute function program.note_counts();
create or replace trigger counts_updating before update of partner_id, occurred_at, currency, amount_minor, deleted_at on program.sale for each row execute function program.note_counts();
create or replace trigger counts_updated after update of partner_id, occurred_at, currency, amount_minor, deleted_at on program.sale for each row execute function program.note_counts();
create or replace trigger counts_deleted before delete on program.commission for each row execute function program.note_counts();
-- Thousands mature at a time, which changes nothing that counts.
create or replace trigger counts_updating before update on program.commission for each row
when (
  (old.partner_id, old.currency, old.amount_minor, old.status = 'paid', program.is_counted(old.status), old.deleted_at)
    is distinct from (new.partner_id, new.currency, new.amount_minor, new.status = 'paid', program.is_counted(new.status), new.deleted_at)
)
execute function program.note_counts();
create or replace trigger counts_updated after update on program.commission for each row
when (
  (old.partner_id, old.currency, old.amount_minor, old.status = 'paid', program.is_counted(old.status), old.deleted_at)
    is distinct from (new.partner_id, new.currency, new.amount_minor, new.status = 'paid', program.is_counted(new.status), new.deleted_at)
)
execute function program.note_counts();

-- The counts that are not in the sums of an organization. Always by the indexes: how far behind the snapshot is, Postgres cannot know when it plans.
create or replace function program.unfolded_counts(organization text)
returns table (subject_id text, noun text, kind text, rows bigint, amount_minor bigint)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  snapshot pg_snapshot;
  oldest xid8;
begin
  select f.seen, pg_snapshot_xmin(f.seen) into snapshot, oldest from program.fold f where f.organization_id = organization and f.sums = 'tallies';
  return query
    select c.subject_id, c.noun, c.kind, c.rows::bigint, c.amount_minor
    from program.counted c
    where c.organization_id = organization and c.inserted_in >= oldest and not pg_visible_in_snapshot(c.inserted_in, snapshot)
    union all
    select n.subject_id, n.noun, n.kind, n.rows, n.amount_minor
    from program.tally_note n
    where n.organization_id = organization and pg_visible_in_snapshot(n.inserted_in, snapshot);
end
$$;

-- The totals of some subjects: the sums of their rows here.
create or replace function program.totals_of(organization text, subjects text[])
returns table (subject_id text, noun text, kind text, rows bigint, amount_minor numeric)
language sql stable
as $$
  select t.subject_id, t.noun, t.kind, t.rows, t.amount_minor
  from program.tally t
  where t.organization_id = organization and t.subject_id = any(subjects)
  union all
  select u.subject_id, u.noun, u.kind, u.rows, u.amount_minor
  from program.unfolded_counts(organization) u
  where u.subject_id = any(subjects)
$$;

-- Sums what a partner sold in the calendar month (UTC) of a time, by currency. No other table than sales is read.
create or replace function program.sales_of_month(organization text, partner text, at timestamptz)
returns table (kind text, rows bigint, amount_minor numeric)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  month text := program.month_of(partner, at);
  snapshot pg_snapshot;
  oldest xid8;
begin
  select f.seen, pg_snapshot_xmin(f.seen) into snapshot, oldest from program.fold f where f.organization_id = organization and f.sums = 'tallies';
  return query
    select t.kind, t.rows, t.amount_minor
    from program.tally t
    where t.organization_id = organization and t.subject_id = month and t.noun = 'sale'
    union all
    select c.kind, c.rows, c.amount_minor
    from program.sale r cross join lateral program.counts_of(r) c
    where r.organization_id = organization and r.inserted_in >= oldest and not pg_visible_in_snapshot(r.inserted_in, snapshot) and c.subject_id = month
    union all
    select n.kind, n.rows, n.amount_minor
    from program.tally_note n
    where n.organization_id = organization and n.subject_id = month and n.noun = 'sale' and pg_visible_in_snapshot(n.inserted_in, snapshot);
end
$$;

-- Moves the sums of an organization on to the snapshot of one statement, and gives how many counts it added.
create or replace function program.fold_counts_of(organization text) returns bigint
language plpgsql volatile
as $$
declare
  added bigint;
begin
  perform from program.fold f where f.organization_id = organization and f.sums = 'tallies' for update skip locked;
  if not found then
    return 0;
  end if;
  with found as materialized (
    select u.* from program.unfolded_counts(organization) u
  ),
  folded as (
    insert into program.tally as t (organization_id, subject_id, noun, kind, rows, amount_minor)
    select organization, n.subject_id, n.noun, n.kind, sum(n.rows), sum(n.amount_minor)
    from found n
    group by n.subject_id, n.noun, n.kind
    order by 2, 3, 4
    on conflict (organization_id, subject_id, noun, kind) do update
    set rows = t.rows + excluded.rows, amount_minor = t.amount_minor + excluded.amount_minor
  ),
  noted as (
    delete from program.tally_note n where n.organization_id = organization
  ),
  moved as (
    update program.fold f set seen = pg_current_snapshot()
    where f.organization_id = organization and f.sums = 'tallies' and exists (select from found)
  )
  select count(*) into added from found;
  return added;
end
$$;

-- Folds the counts of one organization after the other until so many are added, and gives how many there were.
create or replace function program.fold_tallies(most integer) returns bigint
language plpgsql volatile
as $$
declare
  organization text;
  added bigint := 0;
begin
  for organization in
    select f.organization_id from program.fold f where f.sums = 'tallies'
  loop
    added := added + program.fold_counts_of(organization);
    exit when added >= most;
  end loop;
  return added;
end
$$;
