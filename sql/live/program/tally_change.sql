-- The notes of what each write changes: one function a counted table, for its triggers tally_inserted and tally_deleted, which give the rows
-- of a statement as `written`, and tally_updated, which gives each row that changed in a column that counts. To count another table, give it a
-- function here, its recount in tally_audit.sql, and in a migration its triggers and the notes of what it holds.

create or replace function program.tally_program() returns trigger
language plpgsql
as $$
begin
  insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
  select w.organization_id, w.organization_id, 'program', '', count(*) * case tg_op when 'DELETE' then -1 else 1 end, 0
  from written w
  group by w.organization_id;
  return null;
end
$$;
create or replace trigger tally_deleted after delete on program.program referencing old table as written
for each statement execute function program.tally_program();
create or replace trigger tally_inserted after insert on program.program referencing new table as written
for each statement execute function program.tally_program();

create or replace function program.tally_partner_group() returns trigger
language plpgsql
as $$
begin
  insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
  select w.organization_id, w.program_id, 'partner_group', '', count(*) * case tg_op when 'DELETE' then -1 else 1 end, 0
  from written w
  group by w.organization_id, w.program_id;
  return null;
end
$$;
create or replace trigger tally_deleted after delete on program.partner_group referencing old table as written
for each statement execute function program.tally_partner_group();
create or replace trigger tally_inserted after insert on program.partner_group referencing new table as written
for each statement execute function program.tally_partner_group();

create or replace function program.tally_tag() returns trigger
language plpgsql
as $$
begin
  insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
  select w.organization_id, w.program_id, 'tag', '', count(*) * case tg_op when 'DELETE' then -1 else 1 end, 0
  from written w
  group by w.organization_id, w.program_id;
  return null;
end
$$;
create or replace trigger tally_deleted after delete on program.tag referencing old table as written
for each statement execute function program.tally_tag();
create or replace trigger tally_inserted after insert on program.tag referencing new table as written
for each statement execute function program.tally_tag();

create or replace function program.tally_application() returns trigger
language plpgsql
as $$
begin
  insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
  select w.organization_id, w.program_id, 'application', '', count(*) * case tg_op when 'DELETE' then -1 else 1 end, 0
  from written w
  group by w.organization_id, w.program_id;
  return null;
end
$$;
create or replace trigger tally_deleted after delete on program.application referencing old table as written
for each statement execute function program.tally_application();
create or replace trigger tally_inserted after insert on program.application referencing new table as written
for each statement execute function program.tally_application();

create or replace function program.tally_risk_flag() returns trigger
language plpgsql
as $$
begin
  insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
  select w.organization_id, w.program_id, 'risk_flag', '', count(*) * case tg_op when 'DELETE' then -1 else 1 end, 0
  from written w
  group by w.organization_id, w.program_id;
  return null;
end
$$;
create or replace trigger tally_deleted after delete on program.risk_flag referencing old table as written
for each statement execute function program.tally_risk_flag();
create or replace trigger tally_inserted after insert on program.risk_flag referencing new table as written
for each statement execute function program.tally_risk_flag();

create or replace function program.tally_link() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'UPDATE' then
    insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
    select new.organization_id, new.program_id, 'link', '', (new.deleted_at is null)::integer - (old.deleted_at is null)::integer, 0
    where (new.deleted_at is null) <> (old.deleted_at is null);
  else
    insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
    select w.organization_id, w.program_id, 'link', '', count(*) * case tg_op when 'DELETE' then -1 else 1 end, 0
    from written w
    where w.deleted_at is null
    group by w.organization_id, w.program_id;
  end if;
  return null;
end
$$;
create or replace trigger tally_deleted after delete on program.link referencing old table as written
for each statement execute function program.tally_link();
create or replace trigger tally_inserted after insert on program.link referencing new table as written
for each statement execute function program.tally_link();
create or replace trigger tally_updated after update on program.link for each row when (old.deleted_at is distinct from new.deleted_at)
execute function program.tally_link();

create or replace function program.tally_coupon() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'UPDATE' then
    insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
    select new.organization_id, new.program_id, 'coupon', '', (new.deleted_at is null)::integer - (old.deleted_at is null)::integer, 0
    where (new.deleted_at is null) <> (old.deleted_at is null);
  else
    insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
    select w.organization_id, w.program_id, 'coupon', '', count(*) * case tg_op when 'DELETE' then -1 else 1 end, 0
    from written w
    where w.deleted_at is null
    group by w.organization_id, w.program_id;
  end if;
  return null;
end
$$;
create or replace trigger tally_deleted after delete on program.coupon referencing old table as written
for each statement execute function program.tally_coupon();
create or replace trigger tally_inserted after insert on program.coupon referencing new table as written
for each statement execute function program.tally_coupon();
create or replace trigger tally_updated after update on program.coupon for each row when (old.deleted_at is distinct from new.deleted_at)
execute function program.tally_coupon();

create or replace function program.tally_rule() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'UPDATE' then
    insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
    select new.organization_id, new.program_id, 'rule', '', (new.deleted_at is null)::integer - (old.deleted_at is null)::integer, 0
    where (new.deleted_at is null) <> (old.deleted_at is null);
  else
    insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
    select w.organization_id, w.program_id, 'rule', '', count(*) * case tg_op when 'DELETE' then -1 else 1 end, 0
    from written w
    where w.deleted_at is null
    group by w.organization_id, w.program_id;
  end if;
  return null;
end
$$;
create or replace trigger tally_deleted after delete on program.rule referencing old table as written
for each statement execute function program.tally_rule();
create or replace trigger tally_inserted after insert on program.rule referencing new table as written
for each statement execute function program.tally_rule();
create or replace trigger tally_updated after update on program.rule for each row when (old.deleted_at is distinct from new.deleted_at)
execute function program.tally_rule();

create or replace function program.tally_click() returns trigger
language plpgsql
as $$
begin
  insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
  select w.organization_id, s.subject_id, 'click', '', count(*) * case tg_op when 'DELETE' then -1 else 1 end, 0
  from written w
  cross join lateral (values (w.program_id), (w.partner_id), (w.link_id)) as s (subject_id)
  where s.subject_id is not null
  group by w.organization_id, s.subject_id;
  return null;
end
$$;
create or replace trigger tally_deleted after delete on program.click referencing old table as written
for each statement execute function program.tally_click();
create or replace trigger tally_inserted after insert on program.click referencing new table as written
for each statement execute function program.tally_click();

create or replace function program.tally_partner() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'UPDATE' then
    insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
    select new.organization_id, c.subject_id, 'partner', c.status, sum(c.rows), 0
    from (
      values
        (new.program_id, new.status, new.deleted_at, 1),
        (new.group_id, new.status, new.deleted_at, 1),
        (old.program_id, old.status, old.deleted_at, -1),
        (old.group_id, old.status, old.deleted_at, -1)
    ) as c (subject_id, status, deleted_at, rows)
    where c.deleted_at is null
      and c.subject_id is not null
    group by c.subject_id, c.status
    having sum(c.rows) <> 0;
  else
    insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
    select w.organization_id, s.subject_id, 'partner', w.status, count(*) * case tg_op when 'DELETE' then -1 else 1 end, 0
    from written w
    cross join lateral (values (w.program_id), (w.group_id)) as s (subject_id)
    where w.deleted_at is null
      and s.subject_id is not null
    group by w.organization_id, s.subject_id, w.status;
  end if;
  return null;
end
$$;
create or replace trigger tally_deleted after delete on program.partner referencing old table as written
for each statement execute function program.tally_partner();
create or replace trigger tally_inserted after insert on program.partner referencing new table as written
for each statement execute function program.tally_partner();
create or replace trigger tally_updated after update on program.partner for each row when ((old.group_id, old.status, old.deleted_at) is distinct from (new.group_id, new.status, new.deleted_at))
execute function program.tally_partner();

create or replace function program.tally_referral() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'UPDATE' then
    insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
    select new.organization_id, c.subject_id, 'referral', '', sum(c.rows), 0
    from (
      values
        (new.program_id, new.deleted_at, 1), (new.partner_id, new.deleted_at, 1), (new.link_id, new.deleted_at, 1),
        (old.program_id, old.deleted_at, -1), (old.partner_id, old.deleted_at, -1), (old.link_id, old.deleted_at, -1)
    ) as c (subject_id, deleted_at, rows)
    where c.deleted_at is null
      and c.subject_id is not null
    group by c.subject_id
    having sum(c.rows) <> 0;
  else
    insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
    select w.organization_id, s.subject_id, 'referral', '', count(*) * case tg_op when 'DELETE' then -1 else 1 end, 0
    from written w
    cross join lateral (values (w.program_id), (w.partner_id), (w.link_id)) as s (subject_id)
    where w.deleted_at is null
      and s.subject_id is not null
    group by w.organization_id, s.subject_id;
  end if;
  return null;
end
$$;
create or replace trigger tally_deleted after delete on program.referral referencing old table as written
for each statement execute function program.tally_referral();
create or replace trigger tally_inserted after insert on program.referral referencing new table as written
for each statement execute function program.tally_referral();
create or replace trigger tally_updated after update on program.referral for each row when ((old.partner_id, old.link_id, old.deleted_at) is distinct from (new.partner_id, new.link_id, new.deleted_at))
execute function program.tally_referral();

create or replace function program.tally_customer() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'UPDATE' then
    insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
    select new.organization_id, c.subject_id, 'customer', '', sum(c.rows), 0
    from (
      values
        (new.program_id, new.deleted_at, 1), (new.partner_id, new.deleted_at, 1),
        (new.link_id, new.deleted_at, 1), (new.coupon_id, new.deleted_at, 1),
        (old.program_id, old.deleted_at, -1), (old.partner_id, old.deleted_at, -1),
        (old.link_id, old.deleted_at, -1), (old.coupon_id, old.deleted_at, -1)
    ) as c (subject_id, deleted_at, rows)
    where c.deleted_at is null
      and c.subject_id is not null
    group by c.subject_id
    having sum(c.rows) <> 0;
  else
    insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
    select w.organization_id, s.subject_id, 'customer', '', count(*) * case tg_op when 'DELETE' then -1 else 1 end, 0
    from written w
    cross join lateral (values (w.program_id), (w.partner_id), (w.link_id), (w.coupon_id)) as s (subject_id)
    where w.deleted_at is null
      and s.subject_id is not null
    group by w.organization_id, s.subject_id;
  end if;
  return null;
end
$$;
create or replace trigger tally_deleted after delete on program.customer referencing old table as written
for each statement execute function program.tally_customer();
create or replace trigger tally_inserted after insert on program.customer referencing new table as written
for each statement execute function program.tally_customer();
create or replace trigger tally_updated after update on program.customer for each row when ((old.partner_id, old.link_id, old.coupon_id, old.deleted_at) is distinct from (new.partner_id, new.link_id, new.coupon_id, new.deleted_at))
execute function program.tally_customer();

create or replace function program.tally_sale() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'UPDATE' then
    insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
    select new.organization_id, new.program_id, 'sale', c.currency, sum(c.rows), sum(c.amount_minor)
    from (
      values
        (new.currency, new.deleted_at, 1, new.amount_minor),
        (old.currency, old.deleted_at, -1, -old.amount_minor)
    ) as c (currency, deleted_at, rows, amount_minor)
    where c.deleted_at is null
    group by c.currency
    having sum(c.rows) <> 0 or sum(c.amount_minor) <> 0;
  else
    insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
    select
      w.organization_id, w.program_id, 'sale', w.currency,
      count(*) * case tg_op when 'DELETE' then -1 else 1 end,
      sum(w.amount_minor) * case tg_op when 'DELETE' then -1 else 1 end
    from written w
    where w.deleted_at is null
    group by w.organization_id, w.program_id, w.currency;
  end if;
  return null;
end
$$;
create or replace trigger tally_deleted after delete on program.sale referencing old table as written
for each statement execute function program.tally_sale();
create or replace trigger tally_inserted after insert on program.sale referencing new table as written
for each statement execute function program.tally_sale();
create or replace trigger tally_updated after update on program.sale for each row when ((old.currency, old.amount_minor, old.deleted_at) is distinct from (new.currency, new.amount_minor, new.deleted_at))
execute function program.tally_sale();

-- What splits the tallies of commissions: their currency, and whether they are paid.
create or replace function program.tally_kind(currency text, status text) returns text
language sql immutable
return currency || case when status = 'paid' then ' paid' else '' end;

create or replace function program.tally_commission() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'UPDATE' then
    insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
    select new.organization_id, s.subject_id, 'commission', c.kind, sum(c.rows), sum(c.amount_minor)
    from (
      select new.program_id, new.partner_id, new.deleted_at, program.tally_kind(new.currency, new.status) as kind,
        1 as rows, case when program.is_counted(new.status) then new.amount_minor else 0 end as amount_minor
      union all
      select old.program_id, old.partner_id, old.deleted_at, program.tally_kind(old.currency, old.status),
        -1, case when program.is_counted(old.status) then -old.amount_minor else 0 end
    ) as c
    cross join lateral (values (c.program_id), (c.partner_id)) as s (subject_id)
    where c.deleted_at is null
      and s.subject_id is not null
    group by s.subject_id, c.kind
    having sum(c.rows) <> 0 or sum(c.amount_minor) <> 0;
  else
    insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor)
    select
      w.organization_id, s.subject_id, 'commission', program.tally_kind(w.currency, w.status),
      count(*) * case tg_op when 'DELETE' then -1 else 1 end,
      coalesce(sum(w.amount_minor) filter (where program.is_counted(w.status)), 0) * case tg_op when 'DELETE' then -1 else 1 end
    from written w
    cross join lateral (values (w.program_id), (w.partner_id)) as s (subject_id)
    where w.deleted_at is null
      and s.subject_id is not null
    group by w.organization_id, s.subject_id, program.tally_kind(w.currency, w.status);
  end if;
  return null;
end
$$;
create or replace trigger tally_deleted after delete on program.commission referencing old table as written
for each statement execute function program.tally_commission();
create or replace trigger tally_inserted after insert on program.commission referencing new table as written
for each statement execute function program.tally_commission();
create or replace trigger tally_updated after update on program.commission for each row when ((old.partner_id, old.currency, old.amount_minor, old.status, old.deleted_at) is distinct from (new.partner_id, new.currency, new.amount_minor, new.status, new.deleted_at))
execute function program.tally_commission();
