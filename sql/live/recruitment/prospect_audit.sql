-- Invariants of prospects: one row for each violation.
create or replace function recruitment.prospect_audit()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  -- Entries whose job marks or lifts what the request has left.
  with refreshing as (
    select s.organization_id, s.id
    from graphile_worker.jobs j
    join recruitment.suppression s on s.id = substr(j.key, length('refresh_bars:') + 1)
    where j.key like 'refresh\_bars:%' and (j.attempts < j.max_attempts or j.locked_at is not null)
  ),
  entry as (
    select s.organization_id, s.id, s.kind, s.hmac, s.prospect_id
    from recruitment.suppression s
    where s.lifted_at is null and s.reason not in ('unsubscribed', 'hard_bounce')
  ),
  -- Addresses and domains, each once while it is not lifted.
  barred as (
    select s.organization_id, s.hmac from recruitment.suppression s where s.lifted_at is null and s.hmac is not null
  ),
  hit as (
    select e.organization_id, e.id, e.prospect_id from entry e where e.kind = 'prospect'
    union all
    select e.organization_id, e.id, a.prospect_id
    from entry e
    join recruitment.email_address a on a.organization_id = e.organization_id and a.address_hmac = e.hmac
    where e.kind = 'address'
    union all
    select e.organization_id, e.id, a.prospect_id
    from entry e
    join recruitment.email_address a on a.organization_id = e.organization_id and a.domain_hmac = e.hmac
    where e.kind = 'domain'
  )
  select 'whoever an entry of do not contact hits is marked', h.organization_id, h.prospect_id, format('entry %s', h.id)
  from hit h
  join recruitment.prospect p on p.organization_id = h.organization_id and p.id = h.prospect_id
  where p.do_not_contact_reason is null and not exists (select from refreshing r where r.organization_id = h.organization_id and r.id = h.id)

  union all
  select 'whoever holds an unsubscribed address is unsubscribed', p.organization_id, p.id, format('entry %s', s.id)
  from recruitment.suppression s
  join recruitment.email_address a on a.organization_id = s.organization_id and a.address_hmac = s.hmac
  join recruitment.prospect p on p.organization_id = a.organization_id and p.id = a.prospect_id
  where s.lifted_at is null and s.reason = 'unsubscribed' and p.unsubscribed_at is null
    and not exists (select from refreshing r where r.organization_id = s.organization_id and r.id = s.id)

  union all
  select 'a prospect in a list is saved', l.organization_id, l.prospect_id, format('list %s', l.list_id)
  from recruitment.list_prospect l
  join recruitment.prospect p on p.organization_id = l.organization_id and p.id = l.prospect_id
  where not p.saved

  union all
  select 'a prospect has the email_status of the addresses', p.organization_id, p.id, p.email_status
  from recruitment.prospect p
  left join (
    select x.organization_id, x.prospect_id, case
      when bool_or(x.verification = 'valid' and x.bounced_at is null and b.hmac is null and d.hmac is null) then 'verified'
      when bool_or(x.verification <> 'invalid' and x.bounced_at is null and b.hmac is null and d.hmac is null) then 'found'
      when bool_or(x.bounced_at is not null) then 'bounced'
      else 'none'
    end as email_status
    from recruitment.email_address x
    left join barred b on b.organization_id = x.organization_id and b.hmac = x.address_hmac
    left join barred d on d.organization_id = x.organization_id and d.hmac = x.domain_hmac
    group by x.organization_id, x.prospect_id
  ) as a on a.organization_id = p.organization_id and a.prospect_id = p.id
  where p.email_status <> coalesce(a.email_status, 'none') and not exists (select from refreshing r where r.organization_id = p.organization_id)
$$;
comment on function recruitment.prospect_audit() is 'The invariants of prospects; a clean database gives no row.';
