-- New customers, for the mails to their partners: each is found once, as the counts of tally.sql are, so that a request writes nothing for it.

-- The organizations that have customers of whom their partners were not told, or partners who wait for the end of a day. For the scheduled task alone.
create or replace function program.organizations_to_mail(today date) returns setof text
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  position record;
begin
  for position in select f.organization_id, f.seen from program.fold f where f.sums = 'mails' loop
    perform from program.customer c
    where c.organization_id = position.organization_id and c.inserted_in >= pg_snapshot_xmin(position.seen)
      and not pg_visible_in_snapshot(c.inserted_in, position.seen)
    limit 1;
    if found then
      return next position.organization_id;
    end if;
  end loop;
  return query select distinct m.organization_id from program.referral_mail m where m.waiting > 0 and m.day < today;
end
$$;

-- Takes the new customers of an organization, once: how many each partner has, and whether the partner had none before. Those from before `since` are
-- taken too, and not told of.
create or replace function program.take_new_customers(organization text, since timestamptz)
returns table (partner_id text, customers bigint, is_first boolean)
language plpgsql volatile
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  snapshot pg_snapshot;
  oldest xid8;
begin
  select f.seen, pg_snapshot_xmin(f.seen) into snapshot, oldest
  from program.fold f
  where f.organization_id = organization and f.sums = 'mails'
  for update skip locked;
  if not found then
    return;
  end if;
  return query
    with found as materialized (
      select c.partner_id, c.created_at >= since and c.deleted_at is null as is_told
      from program.customer c
      where c.organization_id = organization and c.inserted_in >= oldest and not pg_visible_in_snapshot(c.inserted_in, snapshot)
    ),
    moved as (
      update program.fold f set seen = pg_current_snapshot()
      where f.organization_id = organization and f.sums = 'mails' and exists (select from found)
    )
    select n.partner_id, count(*), not exists (
        select from program.customer e
        where e.organization_id = organization and e.partner_id = n.partner_id and pg_visible_in_snapshot(e.inserted_in, snapshot)
      )
    from found n
    where n.is_told
    group by n.partner_id
    order by n.partner_id;
end
$$;
