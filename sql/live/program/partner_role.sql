-- Finds what belongs to something of a partner's, for the policies of core/partner_role.sql: the partner's own policies apply to what is looked up here.

create or replace function program.sees_payout(payout text) returns boolean
language sql stable
as $$
  select exists (select from program.payout p where p.organization_id = current_setting('rail.organization_id', true) and p.id = payout)
$$;

create or replace function program.sees_sale(sale text) returns boolean
language sql stable
as $$
  select exists (select from program.sale s where s.organization_id = current_setting('rail.organization_id', true) and s.id = sale)
$$;

-- The partner, and their links and coupons: what counts are kept of.
create or replace function program.sees_subject(subject text) returns boolean
language sql stable
as $$
  select subject = current_setting('rail.partner_id', true)
    or exists (select from program.link l where l.organization_id = current_setting('rail.organization_id', true) and l.id = subject)
    or exists (select from program.coupon c where c.organization_id = current_setting('rail.organization_id', true) and c.id = subject)
$$;
