-- Invariants of deals: one row for each violation.
create or replace function recruitment.deal_audit()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  select 'an active deal has a partner and a rule of its program', d.organization_id, d.id, format('partner %s, rule %s', d.partner_id, d.rule_id)
  from recruitment.deal d
  left join program.partner p
    on p.organization_id = d.organization_id and p.id = d.partner_id and p.program_id = d.program_id
  left join program.rule r
    on r.organization_id = d.organization_id and r.id = d.rule_id and r.program_id = d.program_id
  where d.status = 'active' and (p.id is null or r.id is null)

  union all
  select 'an active deal has a bonus for its upfront fee, and no other has one', d.organization_id, d.id, format('bonus %s', d.bonus_id)
  from recruitment.deal d
  left join recruitment.deal_version v
    on v.organization_id = d.organization_id and v.deal_id = d.id and v.version = d.agreed_version
  left join program.commission c
    on c.organization_id = d.organization_id and c.id = d.bonus_id and c.kind = 'bonus' and c.partner_id = d.partner_id
      and c.currency = v.currency
  where (d.status = 'active' and v.upfront_fee_minor is not null) is distinct from (c.id is not null)
    or (d.bonus_id is null) is distinct from (c.id is null)

  union all
  select 'a rule belongs to one activation', d.organization_id, min(d.id), format('rule %s of %s deals', d.rule_id, count(*))
  from recruitment.deal d
  where d.rule_id is not null
  group by d.organization_id, d.rule_id
  having count(*) > 1

  union all
  select 'the current deal of a prospect is theirs and not cancelled', p.organization_id, p.id, format('deal %s', p.deal_id)
  from recruitment.prospect p
  left join recruitment.deal d
    on d.organization_id = p.organization_id and d.id = p.deal_id and d.prospect_id = p.id and d.status <> 'cancelled'
  where p.deal_id is not null and d.id is null
$$;
comment on function recruitment.deal_audit() is 'The invariants of deals; a clean database gives no row.';
