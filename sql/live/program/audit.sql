-- What must always hold of the money, recomputed over a whole database: one row for each thing that does not.
create or replace function program.audit()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  -- Somebody decided that the rate does not hold: until a refund or a correction computes it again.
  with by_hand as (
    select o.organization_id, o.sale_id, o.partner_id
    from program.commission o
    where o.edited_by_hand and o.sale_id is not null
      and (o.kind <> 'sale' or (o.deleted_at is null and o.status not in ('voided', 'rejected')))
  ),
  earned as (
    select
      s.organization_id, s.id as sale_id, s.amount_minor, s.refunded_minor, c.id as commission_id,
      c.rate_type, c.rate_value, c.max_commission_minor,
      case when c.base_is_net then s.net_amount_minor else s.amount_minor end as base_minor,
      (
        select coalesce(sum(o.amount_minor), 0)
        from program.commission o
        where o.organization_id = s.organization_id and o.sale_id = s.id and o.partner_id = s.partner_id
          and o.deleted_at is null and o.status not in ('voided', 'rejected')
      ) as total
    from program.sale s
    join program.commission c
      on c.organization_id = s.organization_id and c.sale_id = s.id and c.partner_id = s.partner_id and c.kind = 'sale'
      and c.deleted_at is null and c.status not in ('voided', 'rejected')
    join program.partner p on p.organization_id = s.organization_id and p.id = s.partner_id and p.deleted_at is null
    where s.deleted_at is null
      and (s.organization_id, s.id, s.partner_id) not in (select h.organization_id, h.sale_id, h.partner_id from by_hand h)
  ),
  base_left as (
    select e.*,
      e.amount_minor > 0 and e.refunded_minor = e.amount_minor as all_refunded,
      case
        when e.amount_minor = 0 then e.base_minor
        else round(e.base_minor::numeric * (e.amount_minor - e.refunded_minor) / e.amount_minor)
      end as base
    from earned e
  ),
  owed as (
    select l.*,
      case
        when l.all_refunded then 0
        else least(
          case when l.rate_type = 'percent' then round(l.base * l.rate_value / 10000) else l.rate_value end,
          coalesce(l.max_commission_minor, 9223372036854775807)
        )
      end as target
    from base_left l
  )
  select 'commissions of a sale are its copied rate of what is left', o.organization_id, o.sale_id,
    format('they come to %s, and should come to %s', o.total, o.target)
  from owed o
  where o.total <> o.target

  union all
  select 'nothing is earned by what was refunded whole', s.organization_id, s.id, format('its commissions come to %s', sum(c.amount_minor))
  from program.sale s
  join program.commission c on c.organization_id = s.organization_id and c.sale_id = s.id and c.partner_id = s.partner_id
  join program.partner p on p.organization_id = s.organization_id and p.id = s.partner_id and p.deleted_at is null
  where s.deleted_at is null and s.status = 'refunded' and c.deleted_at is null and c.status not in ('voided', 'rejected')
    and (s.organization_id, s.id, s.partner_id) not in (select h.organization_id, h.sale_id, h.partner_id from by_hand h)
  group by s.organization_id, s.id
  having sum(c.amount_minor) <> 0

  union all
  select 'a deleted sale has earned nothing', s.organization_id, s.id, format('its commissions come to %s', sum(c.amount_minor))
  from program.sale s
  join program.commission c on c.organization_id = s.organization_id and c.sale_id = s.id
  where s.deleted_at is not null and c.deleted_at is null and c.status not in ('voided', 'rejected')
  group by s.organization_id, s.id
  having sum(c.amount_minor) <> 0

  union all
  select 'what is refunded of a sale is the sum of its refunds', s.organization_id, s.id,
    format('refunded_minor is %s, the refunds come to %s', s.refunded_minor, coalesce(r.total, 0))
  from program.sale s
  left join lateral (
    select sum(x.amount_minor) as total from program.refund x where x.organization_id = s.organization_id and x.sale_id = s.id
  ) as r on true
  where s.refunded_minor <> coalesce(r.total, 0)

  union all
  select 'a sale''s status follows from its refunds', s.organization_id, s.id, format('it is %s with %s of %s refunded', s.status, s.refunded_minor, s.amount_minor)
  from program.sale s
  where s.status <> case
      when s.refunded_minor = 0 then 'paid'
      when s.refunded_minor = s.amount_minor then 'refunded'
      else 'partially_refunded'
    end

  union all
  select 'one partner''s one commission a sale', c.organization_id, c.sale_id, format('%s count', count(*))
  from program.commission c
  where c.kind = 'sale' and c.deleted_at is null and c.status not in ('voided', 'rejected')
  group by c.organization_id, c.sale_id, c.partner_id
  having count(*) > 1

  union all
  select 'a commission is paid by a payout, and nothing else is', c.organization_id, c.id, format('it is %s, paid_at %s, payout %s', c.status, c.paid_at, c.payout_id)
  from program.commission c
  where (c.status = 'paid') <> (c.paid_at is not null) or (c.status = 'paid' and c.payout_id is null)

  union all
  select 'a partner who is deleted has no open commission', c.organization_id, c.id, format('it is %s', c.status)
  from program.commission c
  join program.partner p on p.organization_id = c.organization_id and p.id = c.partner_id
  where p.deleted_at is not null and c.deleted_at is null and c.status in ('pending', 'approved', 'due') and c.payout_id is null
    and c.kind <> 'clawback'

  union all
  select 'a customer has one first sale', s.organization_id, s.customer_id, format('%s are the first', count(*))
  from program.sale s
  where s.is_first_sale and s.deleted_at is null and s.customer_id is not null
  group by s.organization_id, s.customer_id
  having count(*) > 1

  union all
  select 'a visitor has one live referral', r.organization_id, r.visitor_token, format('%s are live', count(*))
  from program.referral r
  where r.deleted_at is null and r.visitor_token is not null
  group by r.organization_id, r.program_id, r.visitor_token
  having count(*) > 1

  union all
  select 'a referral with a customer is no mere visit', r.organization_id, r.id, format('it is %s', r.status)
  from program.referral r
  where r.deleted_at is null and r.status = 'visit'
    and exists (select from program.customer c where c.organization_id = r.organization_id and c.referral_id = r.id)
$$;
comment on function program.audit() is 'The invariants of sales, commissions and referrals; a clean database gives no row.';
