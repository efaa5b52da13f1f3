-- The notes of what each write changes in reports: what is counted of a row before, with sign -1, and what is counted of it afterwards, with
-- sign 1. The refunds and commissions of a sale are counted with its attribution, so they are noted with it.

-- Of what is inserted and updated, the notes are written from the rows themselves, because a read of program.report_fact costs a write more than
-- its checks of foreign keys. What counts is said by the functions of that view. An insert, which is what happens most, runs no more than it needs:
-- what the row does not have itself is looked up only where it has it, and a condition before a fact saves a statement that would note nothing. An
-- update looks up by each row's key (limit 1), whatever the statement for which a session planned it once. program.report_change has the columns
-- of a fact, in their order, behind the sign.

create or replace function program.report_referrals() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'UPDATE' then
    insert into program.report_change select -1, f.* from program.referral_fact(old) f;
  end if;
  insert into program.report_change select 1, f.* from program.referral_fact(new) f;
  return null;
end
$$;
create or replace trigger report_inserted after insert on program.referral for each row execute function program.report_referrals();
create or replace trigger report_updated after update on program.referral for each row
when ((old.created_at, old.partner_id, old.link_id, old.country, old.landing_url, old.deleted_at) is distinct from (new.created_at, new.partner_id, new.link_id, new.country, new.landing_url, new.deleted_at))
execute function program.report_referrals();

create or replace function program.report_customers() returns trigger
language plpgsql
as $$
declare
  referral program.referral;
begin
  if tg_op = 'UPDATE' then
    insert into program.report_change
    select c.sign, f.*
    from (values (-1, old), (1, new)) as c (sign, customer)
    left join lateral (
      select r as referral from program.referral r where r.organization_id = new.organization_id and r.id = (c.customer).referral_id limit 1
    ) as r on true
    cross join lateral (
      select * from program.lead_fact(c.customer, r.referral)
      union all select * from program.customer_fact(c.customer, r.referral)
    ) as f;
    return null;
  end if;

  if new.referral_id is not null then
    select f.* into referral from program.referral f where f.organization_id = new.organization_id and f.id = new.referral_id;
  end if;
  insert into program.report_change select 1, f.* from program.lead_fact(new, referral) f;
  if new.converted_at is not null then
    insert into program.report_change select 1, f.* from program.customer_fact(new, referral) f;
  end if;
  return null;
end
$$;
create or replace trigger report_inserted after insert on program.customer for each row execute function program.report_customers();
create or replace trigger report_updated after update on program.customer for each row
when ((old.partner_id, old.link_id, old.coupon_id, old.referral_id, old.lead_at, old.converted_at, old.deleted_at) is distinct from (new.partner_id, new.link_id, new.coupon_id, new.referral_id, new.lead_at, new.converted_at, new.deleted_at))
execute function program.report_customers();

-- New sales. Nothing is counted with them yet: of those that change, see report_rows().
create or replace function program.report_sales() returns trigger
language plpgsql
as $$
declare
  referral program.referral;
begin
  if new.referral_id is not null then
    select f.* into referral from program.referral f where f.organization_id = new.organization_id and f.id = new.referral_id;
  end if;
  insert into program.report_change select 1, f.* from program.sale_fact(new, referral) f;
  return null;
end
$$;
create or replace trigger report_inserted after insert on program.sale for each row execute function program.report_sales();

create or replace function program.report_refunds() returns trigger
language plpgsql
as $$
declare
  sale program.sale;
  referral program.referral;
begin
  if tg_op = 'UPDATE' then
    insert into program.report_change
    select c.sign, f.*
    from (values (-1, old), (1, new)) as c (sign, refund)
    cross join lateral (
      select s as sale, r as referral
      from program.sale s
      left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
      where s.organization_id = new.organization_id and s.id = (c.refund).sale_id
      limit 1
    ) as s
    cross join lateral program.refund_fact(c.refund, s.sale, s.referral) f;
    return null;
  end if;

  select f.* into sale from program.sale f where f.organization_id = new.organization_id and f.id = new.sale_id;
  if sale.referral_id is not null then
    select f.* into referral from program.referral f where f.organization_id = sale.organization_id and f.id = sale.referral_id;
  end if;
  insert into program.report_change select 1, f.* from program.refund_fact(new, sale, referral) f;
  return null;
end
$$;
create or replace trigger report_inserted after insert on program.refund for each row execute function program.report_refunds();
create or replace trigger report_updated after update on program.refund for each row
when ((old.sale_id, old.amount_minor, old.refunded_at, old.created_at, old.deleted_at) is distinct from (new.sale_id, new.amount_minor, new.refunded_at, new.created_at, new.deleted_at))
execute function program.report_refunds();

create or replace function program.report_commissions() returns trigger
language plpgsql
as $$
declare
  sale program.sale;
  referral program.referral;
begin
  -- What is written with each sale: one condition, since each costs a write of its own.
  if tg_op = 'INSERT' and new.kind = 'sale' and new.sale_id is not null and new.paid_at is null then
    select f.* into sale from program.sale f where f.organization_id = new.organization_id and f.id = new.sale_id;
    if sale.referral_id is not null then
      select f.* into referral from program.referral f where f.organization_id = sale.organization_id and f.id = sale.referral_id;
    end if;
    insert into program.report_change select 1, f.* from program.commission_fact(new, sale, referral) f;
    return null;
  end if;

  -- Of an insert, `old` is null, of which nothing counts.
  insert into program.report_change
  select c.sign, f.*
  from (values (-1, old), (1, new)) as c (sign, commission)
  left join lateral (
    select s as sale, r as referral
    from program.sale s
    left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
    where s.organization_id = new.organization_id and s.id = (c.commission).sale_id
    limit 1
  ) as s on true
  cross join lateral (
    select * from program.commission_fact(c.commission, s.sale, s.referral)
    union all select * from program.bonus_fact(c.commission)
    union all select * from program.clawback_fact(c.commission, s.sale, s.referral)
    union all select * from program.payment_fact(c.commission, s.sale, s.referral)
  ) as f;
  return null;
end
$$;
create or replace trigger report_inserted after insert on program.commission for each row execute function program.report_commissions();
create or replace trigger report_updated after update on program.commission for each row
when (
  (old.partner_id, old.customer_id, old.sale_id, old.kind, old.amount_minor, old.currency, old.created_at, old.paid_at, old.deleted_at)
    is distinct from (new.partner_id, new.customer_id, new.sale_id, new.kind, new.amount_minor, new.currency, new.created_at, new.paid_at, new.deleted_at)
  or (old.status <> new.status and (
    program.is_counted(old.status) <> program.is_counted(new.status) or old.status = 'paid' or new.status = 'paid'
  ))
)
execute function program.report_commissions();

-- Sales that change, with everything that is counted with them, and rows that are deleted: rare, and read from the view.
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
create or replace trigger report_deleting before delete on program.commission for each row execute function program.report_rows();
create or replace trigger report_deleting before delete on program.customer for each row execute function program.report_rows();
create or replace trigger report_deleting before delete on program.referral for each row execute function program.report_rows();
create or replace trigger report_deleting before delete on program.refund for each row execute function program.report_rows();
create or replace trigger report_deleting before delete on program.sale for each row execute function program.report_rows();
create or replace trigger report_updated
  after update of partner_id, customer_id, link_id, referral_id, coupon_id, product_id, amount_minor, currency, occurred_at, deleted_at
  on program.sale for each row execute function program.report_rows();
create or replace trigger report_updating
  before update of partner_id, customer_id, link_id, referral_id, coupon_id, product_id, amount_minor, currency, occurred_at, deleted_at
  on program.sale for each row execute function program.report_rows();

-- Clicks are written more often than anything else, and loaded in bulk: a statement at a time, without a look at the table. A click that changes is
-- of a partition, whose rows are of a type of their own.
create or replace function program.report_clicks() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'UPDATE' then
    insert into program.report_change
    select c.sign, f.*
    from (values (-1, old::program.click), (1, new::program.click)) as c (sign, click)
    cross join lateral program.click_fact(c.click) f;
  else
    insert into program.report_change
    select case tg_op when 'DELETE' then -1 else 1 end, f.*
    from written w
    cross join lateral program.click_fact(row(w.*)::program.click) f;
  end if;
  return null;
end
$$;
create or replace trigger report_deleted after delete on program.click referencing old table as written
for each statement execute function program.report_clicks();
create or replace trigger report_inserted after insert on program.click referencing new table as written
for each statement execute function program.report_clicks();
create or replace trigger report_updated after update on program.click for each row
when ((old.program_id, old.created_at, old.partner_id, old.link_id, old.country, old.landing_url) is distinct from (new.program_id, new.created_at, new.partner_id, new.link_id, new.country, new.landing_url))
execute function program.report_clicks();

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
create or replace trigger report_deleted after delete on program.program for each row execute function program.report_program();
