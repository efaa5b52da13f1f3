-- How many prospects of each kind a brand has, without counting them. The triggers that note what a write changes are in migration 0163; notes
-- and tallies have the same columns in the same order.

create or replace function recruitment.tally_prospect() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'UPDATE' then
    insert into recruitment.prospect_tally_change
    select
      w.organization_id, w.brand_id, w.stage, w.channel, w.source, coalesce(w.country_code, ''), coalesce(w.language_code, ''), w.saved,
      w.hidden, w.email_status in ('found', 'verified'), w.sent > 0, w.do_not_contact_reason is not null, w.unsubscribed_at is not null,
      w.invited_at is not null, w.signed_up_at is not null, w.rows
    from (select new.*, 1 as rows union all select old.*, -1) as w;
  else
    insert into recruitment.prospect_tally_change
    select
      w.organization_id, w.brand_id, w.stage, w.channel, w.source, coalesce(w.country_code, ''), coalesce(w.language_code, ''), w.saved,
      w.hidden, w.email_status in ('found', 'verified'), w.sent > 0, w.do_not_contact_reason is not null, w.unsubscribed_at is not null,
      w.invited_at is not null, w.signed_up_at is not null, count(*) * case tg_op when 'DELETE' then -1 else 1 end
    from written w
    group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15;
  end if;
  return null;
end
$$;
create or replace trigger tally_deleted after delete on recruitment.prospect referencing old table as written
for each statement execute function recruitment.tally_prospect();
create or replace trigger tally_inserted after insert on recruitment.prospect referencing new table as written
for each statement execute function recruitment.tally_prospect();
create or replace trigger tally_updated after update on recruitment.prospect for each row
when (
  (old.brand_id, old.stage, old.channel, old.source, old.country_code, old.language_code, old.saved, old.hidden)
    is distinct from (new.brand_id, new.stage, new.channel, new.source, new.country_code, new.language_code, new.saved, new.hidden)
  or (old.email_status in ('found', 'verified'), old.sent > 0, old.do_not_contact_reason is null, old.unsubscribed_at is null)
    is distinct from (new.email_status in ('found', 'verified'), new.sent > 0, new.do_not_contact_reason is null, new.unsubscribed_at is null)
  or (old.invited_at is null, old.signed_up_at is null) is distinct from (new.invited_at is null, new.signed_up_at is null)
)
execute function recruitment.tally_prospect();

-- What a brand has up to now: tallies and notes together. One statement sees a note, or the tally that holds it.
create or replace view recruitment.prospect_total with (security_invoker = true) as
select
  t.organization_id, t.brand_id, t.stage, t.channel, t.source, t.country_code, t.language_code, t.saved, t.hidden, t.has_email, t.was_sent,
  t.do_not_contact, t.unsubscribed, t.invited, t.signed_up, t.rows
from recruitment.prospect_tally t
union all
select
  c.organization_id, c.brand_id, c.stage, c.channel, c.source, c.country_code, c.language_code, c.saved, c.hidden, c.has_email, c.was_sent,
  c.do_not_contact, c.unsubscribed, c.invited, c.signed_up, c.rows
from recruitment.prospect_tally_change c;
comment on view recruitment.prospect_total is
  'How many prospects of a brand are alike in what lists filter by: the sum of its rows here.';
grant select on recruitment.prospect_total to rail_api;

-- Folds up to so many notes into the tallies, and gives how many there were.
create or replace function recruitment.fold_prospect_tallies(most integer) returns bigint
language sql volatile
as $$
  with taken as (
    delete from recruitment.prospect_tally_change
    where ctid = any(array(select c.ctid from recruitment.prospect_tally_change c limit most for update skip locked))
    returning
      organization_id, brand_id, stage, channel, source, country_code, language_code, saved, hidden, has_email, was_sent, do_not_contact,
      unsubscribed, invited, signed_up, rows
  ),
  folded as (
    insert into recruitment.prospect_tally as f
    select
      t.organization_id, t.brand_id, t.stage, t.channel, t.source, t.country_code, t.language_code, t.saved, t.hidden, t.has_email,
      t.was_sent, t.do_not_contact, t.unsubscribed, t.invited, t.signed_up, sum(t.rows)
    from taken t
    group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    on conflict (
      organization_id, brand_id, stage, channel, source, country_code, language_code, saved, hidden, has_email, was_sent, do_not_contact,
      unsubscribed, invited, signed_up
    ) do update
    set rows = f.rows + excluded.rows
  )
  select count(*) from taken
$$;
comment on function recruitment.fold_prospect_tallies(integer) is 'For the scheduled task alone.';
