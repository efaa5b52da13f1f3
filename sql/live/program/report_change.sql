-- The notes of what each write changes in reports: what is counted of a row before, with sign -1, and what is counted of it afterwards, with
-- sign 1. The refunds and commissions of a sale are counted with its attribution, so they are noted with it.

-- Of what is inserted and updated, the notes are written from the rows themselves, because a read of program.report_fact costs a write more than
-- its checks of foreign keys: an insert gives the rows of a statement as `written`, an update each row that changed in a column that counts.
-- They are what that view says, which `rail audit` and a test hold them against: who changes one changes the other. What a row does not have itself
-- is looked up for each row by its key (limit 1), whatever the statement for which a session planned it once.

create or replace function program.report_referrals() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'UPDATE' then
    insert into program.report_change
      (sign, organization_id, program_id, noun, id, at, partner_id, link_id, country, landing_page, currency, referrals)
    select
      c.sign, new.organization_id, new.program_id, 'referral', new.id, c.created_at, c.partner_id, c.link_id, c.country,
      program.landing_page(c.landing_url), '', 1
    from (
      values
        (-1, old.created_at, old.partner_id, old.link_id, old.country, old.landing_url, old.deleted_at),
        (1, new.created_at, new.partner_id, new.link_id, new.country, new.landing_url, new.deleted_at)
    ) as c (sign, created_at, partner_id, link_id, country, landing_url, deleted_at)
    where c.deleted_at is null;
  else
    insert into program.report_change
      (sign, organization_id, program_id, noun, id, at, partner_id, link_id, country, landing_page, currency, referrals)
    select
      1, w.organization_id, w.program_id, 'referral', w.id, w.created_at, w.partner_id, w.link_id, w.country,
      program.landing_page(w.landing_url), '', 1
    from written w
    where w.deleted_at is null;
  end if;
  return null;
end
$$;

-- A customer is counted twice: as a lead, and as a customer from the first payment on.
create or replace function program.report_customers() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'UPDATE' then
    insert into program.report_change (
      sign, organization_id, program_id, noun, id, at, partner_id, link_id, coupon_id, country, landing_page, currency, leads, customers
    )
    select
      c.sign, new.organization_id, new.program_id, f.noun, new.id, f.at, c.partner_id, c.link_id, c.coupon_id, r.country, r.landing_page, '',
      f.leads, f.customers
    from (
      values
        (-1, old.partner_id, old.link_id, old.coupon_id, old.referral_id, old.lead_at, old.converted_at, old.deleted_at),
        (1, new.partner_id, new.link_id, new.coupon_id, new.referral_id, new.lead_at, new.converted_at, new.deleted_at)
    ) as c (sign, partner_id, link_id, coupon_id, referral_id, lead_at, converted_at, deleted_at)
    left join lateral (
      select r.country, program.landing_page(r.landing_url) as landing_page
      from program.referral r
      where r.organization_id = new.organization_id and r.id = c.referral_id
      limit 1
    ) as r on true
    cross join lateral (
      values ('lead', c.lead_at, 1, null::integer), ('customer', c.converted_at, null, 1)
    ) as f (noun, at, leads, customers)
    where c.deleted_at is null and f.at is not null;
  else
    insert into program.report_change (
      sign, organization_id, program_id, noun, id, at, partner_id, link_id, coupon_id, country, landing_page, currency, leads, customers
    )
    select
      1, w.organization_id, w.program_id, f.noun, w.id, f.at, w.partner_id, w.link_id, w.coupon_id, r.country, r.landing_page, '',
      f.leads, f.customers
    from written w
    left join lateral (
      select r.country, program.landing_page(r.landing_url) as landing_page
      from program.referral r
      where r.organization_id = w.organization_id and r.id = w.referral_id
      limit 1
    ) as r on true
    cross join lateral (
      values ('lead', w.lead_at, 1, null::integer), ('customer', w.converted_at, null, 1)
    ) as f (noun, at, leads, customers)
    where w.deleted_at is null and f.at is not null;
  end if;
  return null;
end
$$;

-- New sales. Nothing is counted with them yet: of those that change, see report_rows().
create or replace function program.report_sales() returns trigger
language plpgsql
as $$
begin
  insert into program.report_change (
    sign, organization_id, program_id, noun, id, sale_id, at, partner_id, link_id, coupon_id, country, landing_page, product_id, customer_id,
    currency, sales, revenue_minor
  )
  select
    1, w.organization_id, w.program_id, 'sale', w.id, w.id, w.occurred_at, w.partner_id, w.link_id, w.coupon_id, r.country, r.landing_page,
    w.product_id, w.customer_id, w.currency, 1, w.amount_minor
  from written w
  left join lateral (
    select r.country, program.landing_page(r.landing_url) as landing_page
    from program.referral r
    where r.organization_id = w.organization_id and r.id = w.referral_id
    limit 1
  ) as r on true
  where w.deleted_at is null and w.partner_id is not null;
  return null;
end
$$;

create or replace function program.report_refunds() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'UPDATE' then
    insert into program.report_change (
      sign, organization_id, program_id, noun, id, sale_id, at, partner_id, link_id, coupon_id, country, landing_page, product_id, customer_id,
      currency, refunds_minor
    )
    select
      c.sign, new.organization_id, new.program_id, 'refund', new.id, c.sale_id, c.at, s.partner_id, s.link_id, s.coupon_id, s.country,
      s.landing_page, s.product_id, s.customer_id, s.currency, c.amount_minor
    from (
      values
        (-1, old.sale_id, old.amount_minor, coalesce(old.refunded_at, old.created_at), old.deleted_at),
        (1, new.sale_id, new.amount_minor, coalesce(new.refunded_at, new.created_at), new.deleted_at)
    ) as c (sign, sale_id, amount_minor, at, deleted_at)
    cross join lateral (
      select s.partner_id, s.link_id, s.coupon_id, s.product_id, s.customer_id, s.currency, r.country,
        program.landing_page(r.landing_url) as landing_page
      from program.sale s
      left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
      where s.organization_id = new.organization_id and s.id = c.sale_id and s.deleted_at is null and s.partner_id is not null
      limit 1
    ) as s
    where c.deleted_at is null;
  else
    insert into program.report_change (
      sign, organization_id, program_id, noun, id, sale_id, at, partner_id, link_id, coupon_id, country, landing_page, product_id, customer_id,
      currency, refunds_minor
    )
    select
      1, w.organization_id, w.program_id, 'refund', w.id, w.sale_id, coalesce(w.refunded_at, w.created_at), s.partner_id, s.link_id, s.coupon_id,
      s.country, s.landing_page, s.product_id, s.customer_id, s.currency, w.amount_minor
    from written w
    cross join lateral (
      select s.partner_id, s.link_id, s.coupon_id, s.product_id, s.customer_id, s.currency, r.country,
        program.landing_page(r.landing_url) as landing_page
      from program.sale s
      left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
      where s.organization_id = w.organization_id and s.id = w.sale_id and s.deleted_at is null and s.partner_id is not null
      limit 1
    ) as s
    where w.deleted_at is null;
  end if;
  return null;
end
$$;

-- A commission of a sale counts at its time, with its attribution, and for the partner of its own.
create or replace function program.report_commissions() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'UPDATE' then
    insert into program.report_change (
      sign, organization_id, program_id, noun, id, sale_id, at, partner_id, link_id, coupon_id, country, landing_page, product_id, customer_id,
      currency, commissions_minor, clawbacks_minor, paid_minor
    )
    select
      c.sign, new.organization_id, new.program_id, f.noun, new.id, c.sale_id, f.at, c.partner_id, s.link_id, s.coupon_id, s.country,
      s.landing_page, s.product_id, c.customer_id, c.currency, f.commissions_minor, f.clawbacks_minor, f.paid_minor
    from (
      values
        (
          -1, old.partner_id, old.customer_id, old.sale_id, old.kind, old.amount_minor, old.currency, old.status, old.created_at, old.paid_at,
          old.deleted_at
        ),
        (
          1, new.partner_id, new.customer_id, new.sale_id, new.kind, new.amount_minor, new.currency, new.status, new.created_at, new.paid_at,
          new.deleted_at
        )
    ) as c (sign, partner_id, customer_id, sale_id, kind, amount_minor, currency, status, created_at, paid_at, deleted_at)
    left join lateral (
      select s.occurred_at, s.link_id, s.coupon_id, s.product_id, r.country, program.landing_page(r.landing_url) as landing_page
      from program.sale s
      left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
      where s.organization_id = new.organization_id and s.id = c.sale_id
      limit 1
    ) as s on true
    cross join lateral (
      values
        (
          'commission', coalesce(s.occurred_at, c.created_at), c.amount_minor, null::bigint, null::bigint,
          c.kind in ('sale', 'bonus') and program.is_counted(c.status)
        ),
        ('clawback', c.created_at, null, -c.amount_minor, null, c.kind = 'clawback' and program.is_counted(c.status)),
        ('paid', c.paid_at, null, null, c.amount_minor, c.status = 'paid' and c.paid_at is not null)
    ) as f (noun, at, commissions_minor, clawbacks_minor, paid_minor, counts)
    where c.deleted_at is null and f.counts;
  else
    insert into program.report_change (
      sign, organization_id, program_id, noun, id, sale_id, at, partner_id, link_id, coupon_id, country, landing_page, product_id, customer_id,
      currency, commissions_minor, clawbacks_minor, paid_minor
    )
    select
      1, w.organization_id, w.program_id, f.noun, w.id, w.sale_id, f.at, w.partner_id, s.link_id, s.coupon_id, s.country, s.landing_page,
      s.product_id, w.customer_id, w.currency, f.commissions_minor, f.clawbacks_minor, f.paid_minor
    from written w
    left join lateral (
      select s.occurred_at, s.link_id, s.coupon_id, s.product_id, r.country, program.landing_page(r.landing_url) as landing_page
      from program.sale s
      left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
      where s.organization_id = w.organization_id and s.id = w.sale_id
      limit 1
    ) as s on true
    cross join lateral (
      values
        (
          'commission', coalesce(s.occurred_at, w.created_at), w.amount_minor, null::bigint, null::bigint,
          w.kind in ('sale', 'bonus') and program.is_counted(w.status)
        ),
        ('clawback', w.created_at, null, -w.amount_minor, null, w.kind = 'clawback' and program.is_counted(w.status)),
        ('paid', w.paid_at, null, null, w.amount_minor, w.status = 'paid' and w.paid_at is not null)
    ) as f (noun, at, commissions_minor, clawbacks_minor, paid_minor, counts)
    where w.deleted_at is null and f.counts;
  end if;
  return null;
end
$$;

-- Sales that change, with everything that is counted with them, and rows that are deleted: rare, and read from the view.
-- program.report_change has the columns of program.report_fact, in their order, behind the sign.
create or replace function program.report_rows() returns trigger
language plpgsql
as $$
declare
  sign constant smallint := case tg_when when 'BEFORE' then -1 else 1 end;
  written record;
begin
  if tg_when = 'BEFORE' then written := old; else written := new; end if;
  -- With its program, everything goes: see program.report_program().
  if tg_op = 'DELETE' and not exists (select from program.program p where p.organization_id = old.organization_id and p.id = old.program_id) then
    return old;
  end if;

  if tg_table_name = 'referral' then
    insert into program.report_change
    select sign, f.*
    from program.report_fact f
    where f.organization_id = written.organization_id and f.noun = 'referral' and f.id = written.id;
  elsif tg_table_name = 'customer' then
    insert into program.report_change
    select sign, f.*
    from program.report_fact f
    where f.organization_id = written.organization_id and f.noun in ('lead', 'customer') and f.id = written.id;
  elsif tg_table_name = 'sale' then
    -- Who is changing one of them meanwhile is waited for, or waits: either counts it with the attribution that holds then.
    if tg_when = 'BEFORE' then
      perform from program.commission c where c.organization_id = old.organization_id and c.sale_id = old.id for no key update;
    end if;
    insert into program.report_change
    select sign, f.*
    from program.report_fact f
    where f.organization_id = written.organization_id and f.sale_id = written.id;
  elsif tg_table_name = 'refund' then
    insert into program.report_change
    select sign, f.*
    from program.report_fact f
    where f.organization_id = written.organization_id and f.noun = 'refund' and f.id = written.id;
  else
    insert into program.report_change
    select sign, f.*
    from program.report_fact f
    where f.organization_id = written.organization_id and f.noun in ('commission', 'clawback', 'paid') and f.id = written.id;
  end if;

  if tg_when = 'AFTER' then return null; end if;
  if tg_op = 'DELETE' then return old; end if;
  return new;
end
$$;

-- Clicks are written more often than anything else, and loaded in bulk: a statement at a time, without a look at the table.
create or replace function program.report_clicks() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'UPDATE' then
    insert into program.report_change (
      sign, organization_id, program_id, noun, id, at, partner_id, link_id, country, landing_page, currency, clicks
    )
    select
      c.sign, new.organization_id, c.program_id, 'click', new.id, c.created_at, c.partner_id, c.link_id, c.country,
      program.landing_page(c.landing_url), '', 1
    from (
      values
        (-1, old.program_id, old.created_at, old.partner_id, old.link_id, old.country, old.landing_url),
        (1, new.program_id, new.created_at, new.partner_id, new.link_id, new.country, new.landing_url)
    ) as c (sign, program_id, created_at, partner_id, link_id, country, landing_url);
  else
    insert into program.report_change (
      sign, organization_id, program_id, noun, id, at, partner_id, link_id, country, landing_page, currency, clicks
    )
    select
      case tg_op when 'DELETE' then -1 else 1 end, w.organization_id, w.program_id, 'click', w.id, w.created_at, w.partner_id, w.link_id,
      w.country, program.landing_page(w.landing_url), '', 1
    from written w;
  end if;
  return null;
end
$$;

-- A program's reports go with it.
create or replace function program.report_program() returns trigger
language plpgsql
as $$
begin
  delete from program.report_change c where c.organization_id = old.organization_id and c.program_id = old.id;
  perform program.drop_report_totals(array[old.id]);
  delete from program.report_slice s where s.organization_id = old.organization_id and s.program_id = old.id;
  delete from program.report_key k where k.organization_id = old.organization_id and k.program_id = old.id;
  return null;
end
$$;
