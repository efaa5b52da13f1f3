-- What the tallies of prospects should be, counted anew: one row for each that is not.
create or replace function recruitment.prospect_tally_audit()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  select 'a tally of prospects is what the brand has', d.organization_id, d.brand_id, d.kind
  from (
    select n.organization_id, n.brand_id, n.rows, concat_ws(
      ' ', n.stage, n.channel, n.source, n.country_code, n.language_code, n.saved, n.hidden, n.has_email, n.was_sent, n.do_not_contact,
      n.unsubscribed, n.invited, n.signed_up
    ) as kind
    from recruitment.prospect_total n
    union all
    select p.organization_id, p.brand_id, -1, concat_ws(
      ' ', p.stage, p.channel, p.source, coalesce(p.country_code, ''), coalesce(p.language_code, ''), p.saved, p.hidden,
      p.email_status in ('found', 'verified'), p.sent > 0, p.do_not_contact_reason is not null, p.unsubscribed_at is not null,
      p.invited_at is not null, p.signed_up_at is not null
    )
    from recruitment.prospect p
  ) as d
  group by d.organization_id, d.brand_id, d.kind
  having sum(d.rows) <> 0
$$;
comment on function recruitment.prospect_tally_audit() is 'The tallies of prospects recounted; a clean database gives no row.';
