-- Runs outside a transaction: everything goes on while the indexes are built.
-- The country of referrals from before, a thousand at a time, and what reports and lists read by the time of what they count.

do $$
declare
  after_organization text collate "C" := '';
  after_id text collate "C" := '';
begin
  loop
    with batch as (
      select r.organization_id, r.id
      from program.referral r
      where (r.organization_id, r.id) > (after_organization, after_id)
      order by r.organization_id, r.id
      limit 1000
    ),
    found as (
      select
        b.organization_id, b.id,
        (
          select c.country
          from program.click c
          where c.organization_id = b.organization_id and c.referral_id = b.id
          order by c.id
          limit 1
        ) as country
      from batch b
    ),
    updated as (
      update program.referral r
      set country = f.country
      from found f
      where r.organization_id = f.organization_id and r.id = f.id and r.country is distinct from f.country and r.country is null
    )
    select b.organization_id, b.id into after_organization, after_id
    from batch b
    order by b.organization_id desc, b.id desc
    limit 1;
    exit when not found;
    commit;
  end loop;
end
$$;

create index concurrently if not exists referral_by_created_at on program.referral (organization_id, program_id, created_at)
  where deleted_at is null;

create index concurrently if not exists customer_by_lead_at on program.customer (organization_id, program_id, lead_at)
  where deleted_at is null;

create index concurrently if not exists customer_by_converted_at on program.customer (organization_id, program_id, converted_at)
  where deleted_at is null and converted_at is not null;

create index concurrently if not exists sale_by_occurred_at on program.sale (organization_id, program_id, occurred_at, id);

create index concurrently if not exists refund_by_refunded_at
  on program.refund (organization_id, program_id, (coalesce(refunded_at, created_at))) where deleted_at is null;

create index concurrently if not exists clawback_by_created_at on program.commission (organization_id, program_id, created_at)
  where deleted_at is null and kind = 'clawback';

create index concurrently if not exists bonus_by_created_at on program.commission (organization_id, program_id, created_at)
  where deleted_at is null and sale_id is null;

create index concurrently if not exists commission_by_paid_at on program.commission (organization_id, program_id, paid_at)
  where deleted_at is null and status = 'paid';
