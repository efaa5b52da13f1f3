-- Invariants of credits: one row for each violation.
create or replace function recruitment.audit()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  select 'the balance of credits is the sum of the ledger', p.organization_id, p.organization_id,
    format('the balance is %s, the entries add up to %s', p.credit_balance, coalesce(e.amount, 0))
  from recruitment.plan p
  left join (
    select x.organization_id, sum(x.amount) as amount, max(x.number) as last_number
    from recruitment.credit_entry x
    group by x.organization_id
  ) as e on e.organization_id = p.organization_id
  where p.credit_balance <> coalesce(e.amount, 0)
    or p.last_credit_number is distinct from e.last_number

  union all
  select 'credits do not fall below zero where they are limited', p.organization_id, p.organization_id, format('the balance is %s', p.credit_balance)
  from recruitment.plan p
  where p.name <> 'enterprise'
    and p.credit_balance < 0

  union all
  select 'entries of credits belong to a plan', e.organization_id, e.id, format('entry %s', e.number)
  from recruitment.credit_entry e
  where not exists (select from recruitment.plan p where p.organization_id = e.organization_id)
$$;
comment on function recruitment.audit() is 'The invariants of credits; a clean database gives no row.';
