-- The sums of a batch so far: while it is generated, its ranges' sums are not yet its own. The argument is the batch's row: inserted by the same
-- statement, it could not be read.
create or replace function program.payout_batch_sums(
  b program.payout_batch, out partners_looked_at bigint, out payouts bigint, out amounts jsonb, out not_eligible jsonb
)
language sql stable
as $$
  with parts as (
    select b.partners_looked_at, b.payouts, b.amounts, b.not_eligible
    union all
    select r.partners_looked_at, r.payouts, r.amounts, r.not_eligible
    from program.payout_batch_range r
    where r.organization_id = b.organization_id and r.batch_id = b.id
  )
  select
    sum(p.partners_looked_at)::bigint,
    sum(p.payouts)::bigint,
    (
      select coalesce(jsonb_object_agg(c.currency, jsonb_build_object('payouts', c.payouts, 'amount_minor', c.amount_minor)), '{}')
      from (
        select a.key as currency, sum((a.value ->> 'payouts')::bigint) as payouts, sum((a.value ->> 'amount_minor')::numeric) as amount_minor
        from parts, jsonb_each(parts.amounts) as a
        group by a.key
      ) as c
    ),
    (
      select coalesce(jsonb_object_agg(c.reason, c.count), '{}')
      from (
        select n.key as reason, sum(n.value::text::bigint) as count
        from parts, jsonb_each(parts.not_eligible) as n
        group by n.key
      ) as c
    )
  from parts p
$$;
comment on function program.payout_batch_sums(program.payout_batch) is 'What a batch came to so far, with what its ranges came to.';
