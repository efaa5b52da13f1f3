-- Counts of a brand's prospects by kind, without counting rows: see sql/live/program/fold.sql.

create or replace function recruitment.begin_fold() returns trigger
language plpgsql
as $$
begin
  insert into recruitment.fold (organization_id) values (new.id);
  return null;
end
$$;
create or replace trigger begin_recruitment_fold after insert on core.organization for each row execute function recruitment.begin_fold();

-- The counts of one prospect.
create or replace view recruitment.counted_prospect with (security_invoker = true) as
select
  p.organization_id, p.brand_id, p.stage, p.channel, p.source, coalesce(p.country_code, '') as country_code,
  coalesce(p.language_code, '') as language_code, p.saved, p.hidden, p.email_status in ('found', 'verified') as has_email, p.sent > 0 as was_sent,
  p.do_not_contact_reason is not null as do_not_contact, p.unsubscribed_at is not null as unsubscribed, p.invited_at is not null as invited,
  p.signed_up_at is not null as signed_up, p.id, p.inserted_in
from recruitment.prospect p;

create or replace function recruitment.note_prospect() returns trigger
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
  insert into recruitment.prospect_tally_note
  select
    c.organization_id, c.brand_id, c.stage, c.channel, c.source, c.country_code, c.language_code, c.saved, c.hidden, c.has_email,
    c.was_sent, c.do_not_contact, c.unsubscribed, c.invited, c.signed_up,
    case tg_when when 'BEFORE' then -1 else 1 end, c.inserted_in
  from recruitment.counted_prospect c
  where c.organization_id = old.organization_id and c.id = old.id;
  if tg_when = 'AFTER' then return null; end if;
  if tg_op = 'DELETE' then return old; end if;
  return new;
end
$$;
create or replace trigger counts_deleted before delete on recruitment.prospect for each row execute function recruitment.note_prospect();
create or replace trigger counts_updating before update on recruitment.prospect for each row
when (
  (old.brand_id, old.stage, old.channel, old.source, old.country_code, old.language_code, old.saved, old.hidden)
    is distinct from (new.brand_id, new.stage, new.channel, new.source, new.country_code, new.language_code, new.saved, new.hidden)
  or (old.email_status in ('found', 'verified'), old.sent > 0, old.do_not_contact_reason is null, old.unsubscribed_at is null)
    is distinct from (new.email_status in ('found', 'verified'), new.sent > 0, new.do_not_contact_reason is null, new.unsubscribed_at is null)
  or (old.invited_at is null, old.signed_up_at is null) is distinct from (new.invited_at is null, new.signed_up_at is null)
)
execute function recruitment.note_prospect();
create or replace trigger counts_updated after update on recruitment.prospect for each row
when (
  (old.brand_id, old.stage, old.channel, old.source, old.country_code, old.language_code, old.saved, old.hidden)
    is distinct from (new.brand_id, new.stage, new.channel, new.source, new.country_code, new.language_code, new.saved, new.hidden)
  or (old.email_status in ('found', 'verified'), old.sent > 0, old.do_not_contact_reason is null, old.unsubscribed_at is null)
    is distinct from (new.email_status in ('found', 'verified'), new.sent > 0, new.do_not_contact_reason is null, new.unsubscribed_at is null)
  or (old.invited_at is null, old.signed_up_at is null) is distinct from (new.invited_at is null, new.signed_up_at is null)
)
execute function recruitment.note_prospect();

-- The counts that are not in the tallies of an organization.
create or replace function recruitment.unfolded_prospects(organization text) returns setof recruitment.prospect_tally
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  snapshot pg_snapshot;
  oldest xid8;
begin
  select f.seen, pg_snapshot_xmin(f.seen) into snapshot, oldest from recruitment.fold f where f.organization_id = organization;
  return query
    select
      c.organization_id, c.brand_id, c.stage, c.channel, c.source, c.country_code, c.language_code, c.saved, c.hidden,
      c.has_email, c.was_sent, c.do_not_contact, c.unsubscribed, c.invited, c.signed_up,
      1::bigint
    from recruitment.counted_prospect c
    where c.organization_id = organization and c.inserted_in >= oldest and not pg_visible_in_snapshot(c.inserted_in, snapshot)
    union all
    select
      n.organization_id, n.brand_id, n.stage, n.channel, n.source, n.country_code, n.language_code, n.saved, n.hidden,
      n.has_email, n.was_sent, n.do_not_contact, n.unsubscribed, n.invited, n.signed_up,
      n.rows
    from recruitment.prospect_tally_note n
    where n.organization_id = organization and pg_visible_in_snapshot(n.inserted_in, snapshot);
end
$$;

-- Counts of the prospects of some brands, by the columns that lists filter by: the sums of their rows here.
create or replace function recruitment.prospect_totals_of(organization text, brands text[]) returns setof recruitment.prospect_tally
language sql stable
as $$
  select t.* from recruitment.prospect_tally t where t.organization_id = organization and t.brand_id = any(brands)
  union all
  select u.* from recruitment.unfolded_prospects(organization) u where u.brand_id = any(brands)
$$;

-- Moves the tallies of an organization on to the snapshot of one statement, and gives how many counts it added.
create or replace function recruitment.fold_prospects_of(organization text) returns bigint
language plpgsql volatile
as $$
declare
  added bigint;
begin
  perform from recruitment.fold f where f.organization_id = organization for update skip locked;
  if not found then
    return 0;
  end if;
  with found as materialized (
    select u.* from recruitment.unfolded_prospects(organization) u
  ),
  folded as (
    insert into recruitment.prospect_tally as t
    select
      n.organization_id, n.brand_id, n.stage, n.channel, n.source, n.country_code, n.language_code, n.saved, n.hidden,
      n.has_email, n.was_sent, n.do_not_contact, n.unsubscribed, n.invited, n.signed_up,
      sum(n.rows)
    from found n
    group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    on conflict (
      organization_id, brand_id, stage, channel, source, country_code, language_code, saved, hidden, has_email, was_sent, do_not_contact,
      unsubscribed, invited, signed_up
    ) do update
    set rows = t.rows + excluded.rows
  ),
  noted as (
    delete from recruitment.prospect_tally_note n where n.organization_id = organization
  ),
  moved as (
    update recruitment.fold f set seen = pg_current_snapshot()
    where f.organization_id = organization and exists (select from found)
  )
  select count(*) into added from found;
  return added;
end
$$;

-- Folds the prospects of one organization after the other until so many are added, and gives how many there were. For the scheduled task alone.
create or replace function recruitment.fold_prospect_tallies(most integer) returns bigint
language plpgsql volatile
as $$
declare
  organization text;
  added bigint := 0;
begin
  for organization in
    select f.organization_id from recruitment.fold f
  loop
    added := added + recruitment.fold_prospects_of(organization);
    exit when added >= most;
  end loop;
  return added;
end
$$;

-- Adopts a dump that was restored: see core.adopt().
create or replace procedure recruitment.adopt_restored()
language sql
as $$
  select recruitment.fold_prospects_of(f.organization_id) from recruitment.fold f;
  update recruitment.fold set seen = pg_current_snapshot();
$$;
