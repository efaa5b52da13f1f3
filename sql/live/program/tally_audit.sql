-- What the tallies should be, counted anew: each table's part is what its function in tally_change.sql notes. A clean database gives no row.
create or replace function program.audit_tallies()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  with held (organization_id, subject_id, noun, kind, rows, amount_minor) as (
    select p.organization_id, p.organization_id, 'program', '', 1, 0::bigint
    from program.program p
    union all
    select r.organization_id, r.program_id, 'partner_group', '', 1, 0
    from program.partner_group r
    union all
    select r.organization_id, r.program_id, 'tag', '', 1, 0
    from program.tag r
    union all
    select r.organization_id, r.program_id, 'application', '', 1, 0
    from program.application r
    union all
    select r.organization_id, r.program_id, 'risk_flag', '', 1, 0
    from program.risk_flag r
    union all
    select r.organization_id, r.program_id, 'link', '', 1, 0
    from program.link r
    where r.deleted_at is null
    union all
    select r.organization_id, r.program_id, 'coupon', '', 1, 0
    from program.coupon r
    where r.deleted_at is null
    union all
    select r.organization_id, r.program_id, 'rule', '', 1, 0
    from program.rule r
    where r.deleted_at is null
    union all
    select r.organization_id, s.subject_id, 'click', '', 1, 0
    from program.click r
    cross join lateral (values (r.program_id), (r.partner_id), (r.link_id)) as s (subject_id)
    union all
    select r.organization_id, s.subject_id, 'partner', r.status, 1, 0
    from program.partner r
    cross join lateral (values (r.program_id), (r.group_id)) as s (subject_id)
    where r.deleted_at is null
    union all
    select r.organization_id, s.subject_id, 'referral', '', 1, 0
    from program.referral r
    cross join lateral (values (r.program_id), (r.partner_id), (r.link_id)) as s (subject_id)
    where r.deleted_at is null
    union all
    select r.organization_id, s.subject_id, 'customer', '', 1, 0
    from program.customer r
    cross join lateral (values (r.program_id), (r.partner_id), (r.link_id), (r.coupon_id)) as s (subject_id)
    where r.deleted_at is null
    union all
    select r.organization_id, r.program_id, 'sale', r.currency, 1, r.amount_minor
    from program.sale r
    where r.deleted_at is null
    union all
    select
      r.organization_id, s.subject_id, 'commission', r.currency || case when r.status = 'paid' then ' paid' else '' end,
      1, case when program.is_counted(r.status) then r.amount_minor else 0 end
    from program.commission r
    cross join lateral (values (r.program_id), (r.partner_id)) as s (subject_id)
    where r.deleted_at is null
  ),
  difference as (
    select h.organization_id, h.subject_id, h.noun, h.kind, h.rows, h.amount_minor
    from held h
    where h.subject_id is not null
    union all
    select n.organization_id, n.subject_id, n.noun, n.kind, -n.rows, -n.amount_minor
    from program.total n
  )
  select 'a tally is what its table holds', d.organization_id, d.subject_id, format('of %s %s', d.noun, d.kind)
  from difference d
  group by d.organization_id, d.subject_id, d.noun, d.kind
  having sum(d.rows) <> 0 or sum(d.amount_minor) <> 0
$$;
comment on function program.audit_tallies() is 'The tallies recounted; a clean database gives no row.';
