-- Keeps payouts and commissions together: a payout's amount is the sum of its commissions at every commit, and a commission is in at most one payout.

-- The fault of a payout by the counts of its commissions: those noted for it, those that it holds, their sum, and how many of them are paid if it is
-- paid, else due.
create or replace function program.payout_fault_of(p program.payout, noted bigint, held bigint, total numeric, alike bigint) returns text
language sql stable
as $$
  select case
      when p.deleted_at is not null or (not p.livemode and p.status in ('paid', 'failed')) then
        case when noted > 0 then format('it is given up, and holds %s commissions', noted) end
      when held <> noted then format('%s of its commissions are of another partner, program or currency', noted - held)
      when held <> p.commission_count then format('it counts %s commissions, and holds %s', p.commission_count, held)
      when total <> p.amount_minor then format('its amount is %s, and its commissions come to %s', p.amount_minor, total)
      when alike < held then format('it is %s, and %s of its commissions are not %s', p.status, held - alike, case when p.status = 'paid' then 'paid' else 'due' end)
    end
$$;

-- Compares a payout with its commissions; null if they agree. They are read by the index of their partner, from the first to the last of them: that
-- is one look, and one for each by its id is ten. Those that are not of the partner are missed there, and show as the difference. A function of rows
-- becomes part of the statement that calls it.
create or replace function program.payout_faults(p program.payout) returns table (fault text)
language sql stable
as $$
  select program.payout_fault_of(p, l.noted, h.held, h.total, case when p.status = 'paid' then h.paid else h.due end)
  from (
    select count(*) as noted, min(l.commission_id) as first, max(l.commission_id) as last
    from program.payout_commission l
    where l.organization_id = p.organization_id and l.payout_id = p.id
  ) as l
  cross join lateral (
    select
      count(*) as held,
      coalesce(sum(c.amount_minor), 0) as total,
      count(*) filter (where c.status = 'paid') as paid,
      count(*) filter (where c.status = 'due') as due
    from program.commission c
    where c.organization_id = p.organization_id and c.program_id = p.program_id and c.partner_id = p.partner_id and c.deleted_at is null
      and c.id between l.first and l.last and c.payout_id = p.id and c.currency = p.currency
  ) as h
$$;

create or replace function program.payout_fault(p program.payout) returns text
language sql stable
as $$ select f.fault from program.payout_faults(p) f $$;

create or replace function program.require_payout_adds_up() returns trigger
language plpgsql
as $$
declare
  fault text;
begin
  select f.fault into fault
  from program.payout p
  cross join lateral program.payout_faults(p) f
  where p.organization_id = new.organization_id and p.id = new.id;
  if fault is not null then
    raise exception 'The payout % does not add up: %.', new.id, fault using errcode = 'check_violation', constraint = 'payout_adds_up';
  end if;
  return null;
end
$$;

-- After commissions changed: each payout that one of them is in, or was in, and that does not add up at this moment, is written once more as it
-- is, so that its own constraint checks it at the commit. A payout that adds up now is checked again by whatever changes it or them later; one that
-- this transaction has written is checked at the commit in any case.
-- Always by the indexes: a session keeps the plan of when there were few payouts.
create or replace function program.check_payouts_of_commissions() returns trigger
language plpgsql
set enable_seqscan = off
as $$
declare
  is_missing boolean;
  is_of_others boolean;
begin
  select bool_or(p.id is null and t.enters), bool_or(p.changed_in is distinct from pg_current_xact_id()) into is_missing, is_of_others
  from (
    select a.organization_id, a.payout_id, true as enters from after a where a.payout_id is not null group by a.organization_id, a.payout_id
    union all
    select b.organization_id, b.payout_id, false from before b where b.payout_id is not null group by b.organization_id, b.payout_id
  ) as t
  left join lateral (
    -- `offset 0`: each is looked up, whatever a plan of another time would have read of the table.
    select q.id, q.changed_in from program.payout q where q.organization_id = t.organization_id and q.id = t.payout_id offset 0
  ) as p on true;
  if is_missing then
    raise exception 'A commission is put into a payout that does not exist.'
      using errcode = 'foreign_key_violation', constraint = 'commission_payout_exists';
  end if;
  -- A batch: this transaction has written them all.
  if is_of_others is not true then
    return null;
  end if;
  update program.payout p
  set updated_at = p.updated_at
  from (
    select a.organization_id, a.payout_id from after a where a.payout_id is not null
    union
    select b.organization_id, b.payout_id from before b where b.payout_id is not null
  ) as touched
  cross join lateral (
    -- `offset 0`: no other payout than these is checked, whatever the order of the joins.
    select program.payout_fault(q) as fault
    from program.payout q
    where q.organization_id = touched.organization_id and q.id = touched.payout_id and q.changed_in is distinct from pg_current_xact_id()
    offset 0
  ) as checked
  where p.organization_id = touched.organization_id and p.id = touched.payout_id and checked.fault is not null;
  return null;
end
$$;

create or replace trigger commission_changes_payout after update on program.commission
referencing old table as before new table as after
for each statement execute function program.check_payouts_of_commissions();

-- A commission that is written into a payout from the start: none is by this service.
create or replace function program.check_payout_of_new_commission() returns trigger
language plpgsql
as $$
begin
  update program.payout p
  set updated_at = p.updated_at
  where p.organization_id = new.organization_id and p.id = new.payout_id;
  if not found then
    raise exception 'A commission is put into a payout that does not exist.'
      using errcode = 'foreign_key_violation', constraint = 'commission_payout_exists';
  end if;
  return null;
end
$$;

drop trigger if exists new_commission_changes_payout on program.commission;
create constraint trigger new_commission_changes_payout after insert on program.commission
deferrable initially deferred
for each row when (new.payout_id is not null) execute function program.check_payout_of_new_commission();

-- Violations, as rows for `rail audit`.
create or replace function program.audit_payouts() returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  select 'a payout is the sum of its commissions', f.organization_id, f.id, f.fault
  from (
    select p.organization_id, p.id, program.payout_fault_of(
      p, coalesce(l.noted, 0), coalesce(h.held, 0), coalesce(h.total, 0), coalesce(case when p.status = 'paid' then h.paid else h.due end, 0)
    ) as fault
    from program.payout p
    left join (
      select x.organization_id, x.payout_id, count(*) as noted from program.payout_commission x group by x.organization_id, x.payout_id
    ) as l on l.organization_id = p.organization_id and l.payout_id = p.id
    left join (
      select c.organization_id, c.payout_id, c.program_id, c.partner_id, c.currency, count(*) as held, sum(c.amount_minor) as total,
        count(*) filter (where c.status = 'paid') as paid,
        count(*) filter (where c.status = 'due') as due
      from program.commission c
      where c.payout_id is not null and c.deleted_at is null
      group by c.organization_id, c.payout_id, c.program_id, c.partner_id, c.currency
    ) as h
      on h.organization_id = p.organization_id and h.payout_id = p.id and h.program_id = p.program_id and h.partner_id = p.partner_id
        and h.currency = p.currency
  ) as f
  where f.fault is not null

  union all
  select 'a commission is in a payout that exists', c.organization_id, c.id, format('%s does not exist', c.payout_id)
  from program.commission c
  left join program.payout p on p.organization_id = c.organization_id and p.id = c.payout_id
  where c.payout_id is not null and p.id is null

  union all
  select 'a payout''s commissions are those that name it', coalesce(c.organization_id, l.organization_id), coalesce(c.id, l.commission_id),
    format('it names %s, and is noted for %s', coalesce(c.payout_id, 'none'), coalesce(l.payout_id, 'none'))
  from (select c.organization_id, c.id, c.payout_id from program.commission c where c.payout_id is not null) as c
  full join program.payout_commission l on l.organization_id = c.organization_id and l.payout_id = c.payout_id and l.commission_id = c.id
  where c.id is null or l.commission_id is null

  union all
  select 'a payout is of its batch''s program', p.organization_id, p.id, format('it is of %s, the batch of %s', p.program_id, b.program_id)
  from program.payout p
  join program.payout_batch b on b.organization_id = p.organization_id and b.id = p.batch_id
  where p.program_id <> b.program_id

  union all
  select 'a batch that is deleted has no payout that was sent', p.organization_id, p.id, format('it is %s', p.status)
  from program.payout p
  join program.payout_batch b on b.organization_id = p.organization_id and b.id = p.batch_id
  where b.deleted_at is not null and p.deleted_at is null and p.status <> 'pending'

  union all
  select 'a payout of a batch has its partner and currency alone', p.organization_id, p.batch_id, format('%s has %s payouts in %s', p.partner_id, count(*), p.currency)
  from program.payout p
  group by p.organization_id, p.batch_id, p.partner_id, p.currency
  having count(*) > 1

  union all
  select 'a payout was attempted as often as it counts', p.organization_id, p.id, format('it counts %s, and has %s', p.attempt, count(a.number))
  from program.payout p
  left join program.payout_attempt a on a.organization_id = p.organization_id and a.payout_id = p.id
  group by p.organization_id, p.id, p.attempt
  having count(a.number) <> p.attempt

  union all
  select 'a payout in processing has an attempt that is open', p.organization_id, p.id, format('attempt %s is %s', p.attempt, coalesce(a.status, 'missing'))
  from program.payout p
  left join program.payout_attempt a on a.organization_id = p.organization_id and a.payout_id = p.id and a.number = p.attempt
  where p.status = 'processing' and coalesce(a.status, '') not in ('prepared', 'in_doubt', 'processing')

  union all
  select 'what a rail paid settles its payout, or is taken back', a.organization_id, a.id, format('the payout is %s', p.status)
  from program.payout_attempt a
  join program.payout p on p.organization_id = a.organization_id and p.id = a.payout_id
  where a.status = 'paid' and a.mode = 'live' and a.excess_commission_id is null
    and not (a.settled and p.status = 'paid' and p.deleted_at is null)

  union all
  select 'a payout is settled by one attempt', a.organization_id, a.payout_id, format('%s attempts settled it', count(*))
  from program.payout_attempt a
  where a.status = 'paid' and a.settled
  group by a.organization_id, a.payout_id
  having count(*) > 1

  union all
  select 'nobody is sent an amount that differs from the payout', a.organization_id, a.id, format('%s %s were sent of %s', a.amount_minor, a.currency, p.amount_minor)
  from program.payout_attempt a
  join program.payout p on p.organization_id = a.organization_id and p.id = a.payout_id
  where (a.amount_minor, a.currency) <> (p.amount_minor, p.currency)
$$;
comment on function program.audit_payouts() is 'The invariants of payouts; a clean database gives no row.';

drop trigger if exists payout_adds_up on program.payout;
create constraint trigger payout_adds_up after insert or update on program.payout
deferrable initially deferred
for each row execute function program.require_payout_adds_up();
