-- Notes the facts that an update or a delete changes, before and after: see fold.sql. The refunds and commissions of a sale are counted with its
-- attribution, so they are noted with it. Made from the row itself: to plan a read of the whole view takes a session longer than all its notes.
-- Always by the indexes: a session keeps the plan of when there were few rows.
create or replace function program.note_facts() returns trigger
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  sign constant smallint := case tg_when when 'BEFORE' then -1 else 1 end;
  noun constant text := tg_argv[0]; -- tables of clicks have the name of their week
  fact record;
begin
  -- A deleted program takes everything with it: see program.report_program().
  if tg_op = 'DELETE' and not exists (select from program.program p where p.organization_id = old.organization_id and p.id = old.program_id) then
    return old;
  end if;

  if tg_when = 'BEFORE' then fact := old; else fact := new; end if;
  if noun = 'click' then
    insert into program.report_note select sign, f.* from program.click_fact(fact) f;
  elsif noun = 'referral' then
    insert into program.report_note select sign, f.* from program.referral_fact(fact) f;
  elsif noun = 'customer' then
    insert into program.report_note
    select sign, f.*
    from (values (true)) as one
    left join program.referral r on r.organization_id = fact.organization_id and r.id = fact.referral_id
    cross join lateral (select * from program.lead_fact(fact, r) union all select * from program.customer_fact(fact, r)) f;
  elsif noun = 'refund' then
    insert into program.report_note
    select sign, f.*
    from program.sale s
    left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
    cross join lateral program.refund_fact(fact, s, r) f
    where s.organization_id = fact.organization_id and s.id = fact.sale_id;
  elsif noun = 'commission' then
    insert into program.report_note
    select sign, f.*
    from (values (true)) as one
    left join program.sale s on s.organization_id = fact.organization_id and s.id = fact.sale_id
    left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
    cross join lateral (
      select * from program.commission_fact(fact, s, r)
      union all select * from program.bonus_fact(fact)
      union all select * from program.clawback_fact(fact, s, r)
      union all select * from program.payment_fact(fact, s, r)
    ) f;
  else
    -- Waits for a transaction that is changing one of them, or is waited for: either counts it with the attribution that holds then.
    if tg_when = 'BEFORE' then
      perform from program.commission c where c.organization_id = old.organization_id and c.sale_id = old.id for no key update;
    end if;
    insert into program.report_note
    select sign, f.*
    from (values (true)) as one
    left join program.referral r on r.organization_id = fact.organization_id and r.id = fact.referral_id
    cross join lateral (
      select * from program.sale_fact(fact, r)
      union all
      select f.*
      from program.refund c
      cross join lateral program.refund_fact(c, fact, r) f
      where c.organization_id = fact.organization_id and c.sale_id = fact.id
      union all
      select f.*
      from program.commission c
      cross join lateral (
        select * from program.commission_fact(c, fact, r)
        union all select * from program.clawback_fact(c, fact, r)
        union all select * from program.payment_fact(c, fact, r)
      ) f
      where c.organization_id = fact.organization_id and c.sale_id = fact.id
    ) f;
  end if;

  if tg_when = 'AFTER' then return null; end if;
  if tg_op = 'DELETE' then return old; end if;
  return new;
end
$$;
create or replace trigger facts_deleted before delete on program.click for each row execute function program.note_facts('click');
create or replace trigger facts_deleted before delete on program.referral for each row execute function program.note_facts('referral');
create or replace trigger facts_deleted before delete on program.customer for each row execute function program.note_facts('customer');
create or replace trigger facts_deleted before delete on program.sale for each row execute function program.note_facts('sale');
create or replace trigger facts_deleted before delete on program.refund for each row execute function program.note_facts('refund');
create or replace trigger facts_deleted before delete on program.commission for each row execute function program.note_facts('commission');
create or replace trigger facts_updating before update on program.click for each row
when (
  (old.program_id, old.created_at, old.partner_id, old.link_id, old.country, old.landing_url)
    is distinct from (new.program_id, new.created_at, new.partner_id, new.link_id, new.country, new.landing_url)
)
execute function program.note_facts('click');
create or replace trigger facts_updated after update on program.click for each row
when (
  (old.program_id, old.created_at, old.partner_id, old.link_id, old.country, old.landing_url)
    is distinct from (new.program_id, new.created_at, new.partner_id, new.link_id, new.country, new.landing_url)
)
execute function program.note_facts('click');
create or replace trigger facts_updating before update on program.referral for each row
when (
  (old.created_at, old.partner_id, old.link_id, old.country, old.landing_url, old.deleted_at)
    is distinct from (new.created_at, new.partner_id, new.link_id, new.country, new.landing_url, new.deleted_at)
)
execute function program.note_facts('referral');
create or replace trigger facts_updated after update on program.referral for each row
when (
  (old.created_at, old.partner_id, old.link_id, old.country, old.landing_url, old.deleted_at)
    is distinct from (new.created_at, new.partner_id, new.link_id, new.country, new.landing_url, new.deleted_at)
)
execute function program.note_facts('referral');
create or replace trigger facts_updating before update on program.customer for each row
when (
  (old.partner_id, old.link_id, old.coupon_id, old.referral_id, old.lead_at, old.converted_at, old.deleted_at)
    is distinct from (new.partner_id, new.link_id, new.coupon_id, new.referral_id, new.lead_at, new.converted_at, new.deleted_at)
)
execute function program.note_facts('customer');
create or replace trigger facts_updated after update on program.customer for each row
when (
  (old.partner_id, old.link_id, old.coupon_id, old.referral_id, old.lead_at, old.converted_at, old.deleted_at)
    is distinct from (new.partner_id, new.link_id, new.coupon_id, new.referral_id, new.lead_at, new.converted_at, new.deleted_at)
)
execute function program.note_facts('customer');
create or replace trigger facts_updating before update on program.refund for each row
when (
  (old.sale_id, old.amount_minor, old.refunded_at, old.created_at, old.reversed_at, old.deleted_at)
    is distinct from (new.sale_id, new.amount_minor, new.refunded_at, new.created_at, new.reversed_at, new.deleted_at)
)
execute function program.note_facts('refund');
create or replace trigger facts_updated after update on program.refund for each row
when (
  (old.sale_id, old.amount_minor, old.refunded_at, old.created_at, old.reversed_at, old.deleted_at)
    is distinct from (new.sale_id, new.amount_minor, new.refunded_at, new.created_at, new.reversed_at, new.deleted_at)
)
execute function program.note_facts('refund');
create or replace trigger facts_updating
  before update of partner_id, customer_id, link_id, referral_id, coupon_id, product_id, amount_minor, currency, occurred_at, deleted_at
  on program.sale for each row execute function program.note_facts('sale');
create or replace trigger facts_updated
  after update of partner_id, customer_id, link_id, referral_id, coupon_id, product_id, amount_minor, currency, occurred_at, deleted_at
  on program.sale for each row execute function program.note_facts('sale');

-- Notes commissions, of which thousands change with a payout: both facts are made from the row itself, by one statement, and no view is read.
create or replace function program.note_commission_facts() returns trigger
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
begin
  insert into program.report_note
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
create or replace trigger facts_updated after update on program.commission for each row
when (
  (old.partner_id, old.customer_id, old.sale_id, old.kind, old.amount_minor, old.currency, old.created_at, old.paid_at, old.deleted_at)
    is distinct from (new.partner_id, new.customer_id, new.sale_id, new.kind, new.amount_minor, new.currency, new.created_at, new.paid_at, new.deleted_at)
  or (old.status <> new.status and (
    program.is_counted(old.status) <> program.is_counted(new.status) or old.status = 'paid' or new.status = 'paid'
  ))
)
execute function program.note_commission_facts();

-- A program's reports go with it.
create or replace function program.report_program() returns trigger
language plpgsql
as $$
begin
  delete from program.report_note c where c.organization_id = old.organization_id and c.program_id = old.id;
  perform program.drop_report_totals(array[old.id]);
  delete from program.report_slice s where s.organization_id = old.organization_id and s.program_id = old.id;
  delete from program.report_key k where k.organization_id = old.organization_id and k.program_id = old.id;
  return null;
end
$$;
create or replace trigger report_deleted after delete on program.program for each row execute function program.report_program();

-- The facts that are not in the sums of an organization. Always by the indexes, and by a plan that a session makes once: how far behind the snapshot
-- is, Postgres cannot know when it plans.
create or replace function program.unfolded_facts(organization text) returns setof program.report_note
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  snapshot pg_snapshot;
  oldest xid8;
begin
  select f.seen, pg_snapshot_xmin(f.seen) into snapshot, oldest
  from program.fold f
  where f.organization_id = organization and f.sums = 'reports';
  return query
    select 1::smallint, f.*
    from program.report_fact f
    where f.organization_id = organization and f.inserted_in >= oldest and not pg_visible_in_snapshot(f.inserted_in, snapshot)
    union all
    select n.*
    from program.report_note n
    where n.organization_id = organization and pg_visible_in_snapshot(n.inserted_in, snapshot);
end
$$;
