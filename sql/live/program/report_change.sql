-- The notes of what each write changes in reports: what is counted of a row before, with sign -1, and what is counted of it afterwards, with
-- sign 1. The refunds and commissions of a sale are counted with its attribution, so they are noted with it.

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
  elsif tg_table_name = 'sale' and tg_op = 'INSERT' then
    insert into program.report_change
    select sign, f.*
    from program.report_fact f
    where f.organization_id = written.organization_id and f.noun = 'sale' and f.id = written.id;
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
  delete from program.report_total t where t.organization_id = old.organization_id and t.program_id = old.id;
  return null;
end
$$;
