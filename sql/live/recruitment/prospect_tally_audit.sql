-- The tallies of prospects counted anew: what the snapshot sees, less what is noted of it since. A clean database gives no row.
create or replace function recruitment.prospect_tally_audit()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  select 'a tally of prospects is what the brand has', d.organization_id, d.brand_id, d.kind
  from (
    select t.organization_id, t.brand_id, t.rows, concat_ws(
      ' ', t.stage, t.channel, t.source, t.country_code, t.language_code, t.saved, t.hidden, t.has_email, t.was_sent, t.do_not_contact,
      t.unsubscribed, t.invited, t.signed_up
    ) as kind
    from recruitment.prospect_tally t
    union all
    select n.organization_id, n.brand_id, n.rows, concat_ws(
      ' ', n.stage, n.channel, n.source, n.country_code, n.language_code, n.saved, n.hidden, n.has_email, n.was_sent, n.do_not_contact,
      n.unsubscribed, n.invited, n.signed_up
    )
    from recruitment.prospect_tally_note n
    join recruitment.fold f on f.organization_id = n.organization_id and pg_visible_in_snapshot(n.inserted_in, f.seen)
    union all
    select c.organization_id, c.brand_id, -1, concat_ws(
      ' ', c.stage, c.channel, c.source, c.country_code, c.language_code, c.saved, c.hidden, c.has_email, c.was_sent, c.do_not_contact,
      c.unsubscribed, c.invited, c.signed_up
    )
    from recruitment.counted_prospect c
    join recruitment.fold f on f.organization_id = c.organization_id and pg_visible_in_snapshot(c.inserted_in, f.seen)
  ) as d
  group by d.organization_id, d.brand_id, d.kind
  having sum(d.rows) <> 0
$$;
comment on function recruitment.prospect_tally_audit() is 'The tallies of prospects recounted; a clean database gives no row.';
