-- Invariants of the money, recomputed over a whole database: one row for each violation. The stats that the API gives are no counters: each is a
-- query of the rows by an index, so there is nothing here that could drift from them.
create or replace function program.audit()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  -- Corrections of a sale that people decided: the amounts by which its commissions may be less, or more, than they should.
  with by_hand as (
    select c.organization_id, c.sale_id, c.partner_id,
      sum(least(c.changed, 0)) as least,
      sum(greatest(c.changed, 0)) as most
    from (
      select o.organization_id, o.sale_id, o.partner_id,
        case when o.deleted_at is null and program.is_counted(o.status) then o.amount_minor else 0 end
          - coalesce(o.computed_minor, o.amount_minor) as changed
      from program.commission o
      where o.edited_by_hand and o.kind <> 'sale' and o.sale_id is not null
    ) as c
    group by c.organization_id, c.sale_id, c.partner_id
  ),
  counting as not materialized (
    select c.*
    from program.commission c
    where c.deleted_at is null and program.is_counted(c.status)
  ),
  counted as (
    select c.organization_id, c.sale_id, c.partner_id, sum(c.amount_minor) as total
    from counting c
    where c.sale_id is not null
    group by c.organization_id, c.sale_id, c.partner_id
  ),
  -- Commissions of each partner who is not deleted, for sales whose correction people did not decline: zero if the sale earns nothing.
  earnings as (
    select c.organization_id, c.sale_id, c.partner_id, c.total
    from counted c
    join program.partner p on p.organization_id = c.organization_id and p.id = c.partner_id and p.deleted_at is null
    left join by_hand h on h.organization_id = c.organization_id and h.sale_id = c.sale_id and h.partner_id = c.partner_id
    where c.total not between coalesce(h.least, 0) and coalesce(h.most, 0)
  ),
  -- The commission of each partner of a sale whose rate holds: the one that counts, else the last one that was made.
  copied as (
    select distinct on (c.organization_id, c.sale_id, c.partner_id)
      c.organization_id, c.sale_id, c.partner_id, c.id, c.rate_type, c.rate_value, c.max_commission_minor, c.base_is_net,
      c.deleted_at, c.status, c.edited_by_hand, c.edited_total_minor, c.edited_base_minor, c.void_reason
    from program.commission c
    where c.kind = 'sale'
    order by c.organization_id, c.sale_id, c.partner_id, c.deleted_at is not null or not program.is_counted(c.status), c.id desc
  ),
  earned as (
    select
      s.organization_id, s.id as sale_id, s.partner_id, s.amount_minor, s.refunded_minor, c.id as commission_id,
      c.rate_type, c.rate_value, c.max_commission_minor,
      case when c.edited_by_hand or c.status = 'voided' then c.edited_total_minor end as edited_total,
      c.edited_base_minor as edited_base,
      case when c.base_is_net then s.net_amount_minor else s.amount_minor end as base_minor,
      coalesce(o.total, 0) as total
    from program.sale s
    join copied c on c.organization_id = s.organization_id and c.sale_id = s.id and c.partner_id = s.partner_id
    join program.partner p on p.organization_id = s.organization_id and p.id = s.partner_id and p.deleted_at is null
    left join counted o on o.organization_id = s.organization_id and o.sale_id = s.id and o.partner_id = s.partner_id
    where s.deleted_at is null
      and c.deleted_at is null
      and (
        program.is_counted(c.status)
        or (c.status = 'voided' and not c.edited_by_hand and c.void_reason in ('sale_refunded', 'sale_corrected'))
      )
  ),
  base_left as (
    select e.*,
      e.refunded_minor = e.amount_minor as nothing_left,
      case
        when e.amount_minor = 0 then e.base_minor
        -- Exact: a quotient that numeric has rounded before would be rounded twice.
        else div(e.base_minor::numeric * (e.amount_minor - e.refunded_minor) * 2 + e.amount_minor, e.amount_minor::numeric * 2)
      end as base
    from earned e
  ),
  owed as (
    select l.*,
      case
        when l.nothing_left then 0
        when l.edited_base = 0 and l.edited_total is not null then l.edited_total
        when l.edited_total is not null
          then sign(l.edited_total) * div(abs(l.edited_total)::numeric * l.base * 2 + l.edited_base, l.edited_base::numeric * 2)
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
  left join by_hand h on h.organization_id = o.organization_id and h.sale_id = o.sale_id and h.partner_id = o.partner_id
  where o.total not between o.target + coalesce(h.least, 0) and o.target + coalesce(h.most, 0)

  union all
  select 'nothing is earned by what was refunded whole', s.organization_id, s.id, format('its commissions come to %s', e.total)
  from program.sale s
  join earnings e on e.organization_id = s.organization_id and e.sale_id = s.id and e.partner_id = s.partner_id
  where s.deleted_at is null and s.status = 'refunded'

  union all
  select 'what a sale earned is its partner''s alone', s.organization_id, s.id, format('%s has %s of it', e.partner_id, e.total)
  from earnings e
  join program.sale s on s.organization_id = e.organization_id and s.id = e.sale_id
  where s.deleted_at is null and e.partner_id is distinct from s.partner_id

  union all
  select 'a partner earns nothing by their own purchase', s.organization_id, s.id, format('%s has %s of it', e.partner_id, e.total)
  from earnings e
  join program.sale s on s.organization_id = e.organization_id and s.id = e.sale_id and s.self_referral_partner_id = e.partner_id
  where s.deleted_at is null

  union all
  select 'a commission of a sale is in its currency and its program', c.organization_id, c.id,
    format('%s in %s, the sale %s in %s', c.currency, c.program_id, s.currency, s.program_id)
  from program.commission c
  join program.sale s on s.organization_id = c.organization_id and s.id = c.sale_id
  where (c.currency, c.program_id) <> (s.currency, s.program_id)

  union all
  select 'a clawback takes back of what its partner earned by its sale', c.organization_id, c.id,
    format('it is of %s, which %s earned by %s', c.clawback_of, o.partner_id, o.sale_id)
  from program.commission c
  join program.commission o on o.organization_id = c.organization_id and o.id = c.clawback_of
  where (c.partner_id, c.sale_id) is distinct from (o.partner_id, o.sale_id)

  union all
  select 'a sale''s net amount is its amount less its parts', s.organization_id, s.id, format('net_amount_minor is %s', s.net_amount_minor)
  from program.sale s
  where s.net_amount_minor
    <> greatest(0, s.amount_minor::numeric - s.tax_minor - s.shipping_minor - s.fee_minor - s.discount_minor)

  union all
  select 'a deleted sale has earned nothing', s.organization_id, s.id, format('%s has %s of it', e.partner_id, e.total)
  from earnings e
  join program.sale s on s.organization_id = e.organization_id and s.id = e.sale_id
  where s.deleted_at is not null

  union all
  select 'what is refunded of a sale is the sum of its refunds', s.organization_id, s.id,
    format('refunded_minor is %s, the refunds come to %s', s.refunded_minor, coalesce(r.total, 0))
  from program.sale s
  left join (
    select x.organization_id, x.sale_id, sum(x.amount_minor) as total
    from program.refund x
    where x.reversed_at is null
    group by x.organization_id, x.sale_id
  ) as r on r.organization_id = s.organization_id and r.sale_id = s.id
  where s.refunded_minor <> coalesce(r.total, 0)

  union all
  select 'unpaid commissions of a disputed sale are on hold, and no others are so by a dispute', c.organization_id, c.id,
    format('it is %s, and the sale has %s dispute that is open', c.status, case when d.sale_id is null then 'no' else 'a' end)
  from program.commission c
  left join (
    select x.organization_id, x.sale_id from program.dispute x where x.status = 'open' and x.deleted_at is null group by x.organization_id, x.sale_id
  ) as d on d.organization_id = c.organization_id and d.sale_id = c.sale_id
  where c.deleted_at is null and case
      when c.hold_reason = 'dispute' then d.sale_id is null
      else d.sale_id is not null and c.status in ('pending', 'approved', 'due') and c.payout_id is null and c.kind <> 'clawback'
    end

  union all
  select 'only the refund of a lost dispute stands', d.organization_id, d.id, format('it is %s, and the refund %s stands', d.status, f.id)
  from program.dispute d
  join program.refund f on f.organization_id = d.organization_id and f.id = d.refund_id
  where d.deleted_at is null and d.status <> 'lost' and f.reversed_at is null

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
  where c.kind = 'sale' and c.deleted_at is null and program.is_counted(c.status)
  group by c.organization_id, c.sale_id, c.partner_id
  having count(*) > 1

  union all
  select 'a voided commission says when and why', c.organization_id, c.id, format('it is %s, voided_at %s, %s', c.status, c.voided_at, c.void_reason)
  from program.commission c
  where (c.status = 'voided') <> (c.voided_at is not null and c.void_reason is not null)

  union all
  select 'a partner who is deleted has no open commission', c.organization_id, c.id, format('it is %s', c.status)
  from program.commission c
  join program.partner p on p.organization_id = c.organization_id and p.id = c.partner_id
  where p.deleted_at is not null and c.deleted_at is null and c.status in ('pending', 'approved', 'due', 'on_hold') and c.payout_id is null
    and c.kind <> 'clawback'
    -- The job that voids the others, beyond what the request did.
    and not exists (
      select from graphile_worker.jobs j
      where j.key = 'delete_partner:' || p.id and (j.attempts < j.max_attempts or j.locked_at is not null)
    )

  union all
  select 'a customer has one first sale', s.organization_id, s.customer_id, format('%s are the first', count(*))
  from program.sale s
  where s.is_first_sale and s.deleted_at is null and s.customer_id is not null
  group by s.organization_id, s.customer_id
  having count(*) > 1

  union all
  select 'a flag about an erased customer holds no evidence', f.organization_id, f.id, format('of kind %s', f.kind)
  from program.risk_flag f
  join program.customer c on c.organization_id = f.organization_id and c.id = f.customer_id
  where c.deleted_at is not null and f.evidence <> '{}'

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

  union all
  select 'a referral that is more than a visit has a customer', r.organization_id, r.id, format('it is %s', r.status)
  from program.referral r
  where r.status <> 'visit'
    and not exists (select from program.customer c where c.organization_id = r.organization_id and c.referral_id = r.id)

  union all
  select 'a click is credited to the visitor''s referral of its partner', k.organization_id, k.id, format('it is credited to %s', k.referral_id)
  from program.click k
  join program.referral r on r.organization_id = k.organization_id and r.id = k.referral_id
  where (k.program_id, k.partner_id, k.visitor_token) is distinct from (r.program_id, r.partner_id, r.visitor_token)

  union all
  select 'a pending partner is in the review queue, and nobody else', coalesce(p.organization_id, a.organization_id), coalesce(p.id, a.partner_id),
    format('the partner is %s, the application %s', p.status, a.status)
  from (select x.* from program.partner x where x.status = 'pending' and x.deleted_at is null) as p
  full join (select x.* from program.application x where x.status = 'pending') as a
    on a.organization_id = p.organization_id and a.partner_id = p.id
  where p.id is null or a.id is null

  union all
  select 'a partner''s currency is the program''s', p.organization_id, p.id, format('it is %s, and the program''s %s', p.currency, g.currency)
  from program.partner p
  join program.program g on g.organization_id = p.organization_id and g.id = p.program_id
  where p.currency <> g.currency

  union all
  select 'a program has one default group', g.organization_id, g.id, format('it has %s', count(x.id))
  from program.program g
  left join program.partner_group x on x.organization_id = g.organization_id and x.program_id = g.id and x.is_default
  group by g.organization_id, g.id
  having count(x.id) <> 1
$$;
comment on function program.audit() is 'The invariants of sales, commissions, referrals and partners; a clean database gives no row.';
