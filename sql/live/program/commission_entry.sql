-- Entries of commissions: the one place that writes them, for every way in which a commission is inserted or changed. What a commission counts is
-- its amount, or 0 when it is voided, rejected or deleted.

create or replace function program.counted_minor(amount_minor bigint, status text, deleted_at timestamptz) returns bigint
language sql immutable parallel safe
return case when deleted_at is null and program.is_counted(status) then amount_minor else 0 end;
comment on function program.counted_minor(bigint, text, timestamptz) is 'What a commission counts: its amount, or 0 when it is voided, rejected or deleted.';

-- Why a sale's commission changes: a refund or a correction that the same transaction wrote, with the same time, else a person.
create or replace function program.cause_of_change(
  organization text, sale text, changed_at timestamptz, out cause text, out refund_id text, out effective_at timestamptz
)
language sql stable
as $$
  select
    case
      when r.id is not null then 'sale_refunded'
      when s.deleted_at is not null then 'sale_deleted'
      when s.updated_at = changed_at then 'sale_corrected'
      else 'edited_by_hand'
    end,
    r.id,
    coalesce(r.refunded_at, changed_at)
  from (values (sale)) as given (sale_id)
  left join program.sale s on s.organization_id = organization and s.id = given.sale_id
  left join lateral (
    select f.id, f.refunded_at
    from program.refund f
    where f.organization_id = organization and f.sale_id = sale and f.created_at = changed_at and f.deleted_at is null
    order by f.id desc
    limit 1
  ) as r on true
$$;

create or replace function program.write_entries_of_new_commissions() returns trigger
language plpgsql
as $$
begin
  insert into program.commission_entry
    (organization_id, commission_id, program_id, partner_id, sale_id, refund_id, kind, cause, amount_minor, currency, effective_at, posted_at)
  select
    w.organization_id, w.id, w.program_id, w.partner_id, w.sale_id, c.refund_id,
    case when w.kind = 'clawback' then 'clawed_back' when w.clawback_of is not null then 'adjusted' else 'earned' end,
    case
      when w.kind = 'clawback' and w.sale_id is null then 'paid_twice'
      when c.cause = 'edited_by_hand' then 'sale_corrected'
      else coalesce(c.cause, w.kind)
    end,
    w.amount_minor, w.currency,
    coalesce(case when w.kind = 'sale' then s.occurred_at end, c.effective_at, w.created_at), now()
  from written w
  left join program.sale s on w.kind = 'sale' and s.organization_id = w.organization_id and s.id = w.sale_id
  left join lateral program.cause_of_change(w.organization_id, w.sale_id, w.created_at) as c
    on w.kind <> 'sale' and w.sale_id is not null
  where program.counted_minor(w.amount_minor, w.status, w.deleted_at) <> 0;

  insert into program.commission_entry
    (organization_id, commission_id, program_id, partner_id, sale_id, payout_id, kind, cause, amount_minor, currency, effective_at, posted_at)
  select
    w.organization_id, w.id, w.program_id, w.partner_id, w.sale_id, w.payout_id, 'paid', 'payout_paid', -w.amount_minor, w.currency,
    coalesce(w.paid_at, w.created_at), now()
  from written w
  where w.status = 'paid' and w.deleted_at is null and w.amount_minor <> 0;
  return null;
end
$$;

-- An amount of 0 is no entry.
create or replace function program.write_entry(
  commission program.commission, kind text, cause text, refund_id text, payout_id text, amount_minor bigint, effective_at timestamptz
)
returns void
language sql volatile
as $$
  insert into program.commission_entry
    (organization_id, commission_id, program_id, partner_id, sale_id, refund_id, payout_id, kind, cause, amount_minor, currency, effective_at, posted_at)
  select
    commission.organization_id, commission.id, commission.program_id, commission.partner_id, commission.sale_id, refund_id, payout_id,
    kind, cause, amount_minor, commission.currency, coalesce(effective_at, commission.updated_at), now()
  where amount_minor <> 0
$$;

create or replace function program.write_entries_of_changed_commission() returns trigger
language plpgsql
as $$
declare
  counted_before constant bigint := program.counted_minor(old.amount_minor, old.status, old.deleted_at);
  counted_after constant bigint := program.counted_minor(new.amount_minor, new.status, new.deleted_at);
  paid_before constant bigint := case when old.status = 'paid' then counted_before else 0 end;
  paid_after constant bigint := case when new.status = 'paid' then counted_after else 0 end;
  counts_not_before constant boolean := old.deleted_at is not null or not program.is_counted(old.status);
  counts_not_after constant boolean := new.deleted_at is not null or not program.is_counted(new.status);
  why record;
begin
  if (old.partner_id, old.currency, old.program_id) <> (new.partner_id, new.currency, new.program_id) then
    perform program.write_entry(old, 'adjusted', 'moved', null, null, -counted_before, new.updated_at);
    perform program.write_entry(old, 'paid', 'moved', null, old.payout_id, paid_before, new.updated_at);
    perform program.write_entry(new, 'adjusted', 'moved', null, null, counted_after, new.updated_at);
    perform program.write_entry(new, 'paid', 'moved', null, new.payout_id, -paid_after, new.updated_at);
    return null;
  end if;

  if counted_before <> counted_after then
    select c.cause, c.refund_id, c.effective_at into why
    from program.cause_of_change(new.organization_id, new.sale_id, new.updated_at) c;
    if counts_not_after then
      why.cause := case
        when new.deleted_at is not null and why.cause = 'edited_by_hand' then 'deleted'
        when new.deleted_at is not null then why.cause
        when new.status = 'rejected' then 'rejected'
        else coalesce(new.void_reason, 'voided')
      end;
    elsif counts_not_before then
      why.cause := 'reinstated';
    end if;
    perform program.write_entry(
      new, case when counts_not_after then 'voided' when counts_not_before then 'earned' else 'adjusted' end,
      why.cause, why.refund_id, null, counted_after - counted_before, why.effective_at
    );
  end if;

  perform program.write_entry(
    new, 'paid', case when new.status = 'paid' then 'payout_paid' else 'payout_returned' end, null, coalesce(new.payout_id, old.payout_id),
    paid_before - paid_after, case when new.status = 'paid' then new.paid_at end
  );
  return null;
end
$$;

-- Entries go with their program, and never by themselves.
create or replace function program.refuse_change_of_entry() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'DELETE' and pg_trigger_depth() > 1 then
    return old;
  end if;
  raise exception 'Entries of commissions are only added: % is refused.', tg_op;
end
$$;

create or replace trigger entries_inserted after insert on program.commission referencing new table as written
for each statement execute function program.write_entries_of_new_commissions();
create or replace trigger entries_updated after update on program.commission for each row
when (
  (old.amount_minor, old.status, old.deleted_at, old.partner_id, old.currency, old.program_id)
    is distinct from (new.amount_minor, new.status, new.deleted_at, new.partner_id, new.currency, new.program_id)
  and (
    program.counted_minor(old.amount_minor, old.status, old.deleted_at) <> program.counted_minor(new.amount_minor, new.status, new.deleted_at)
    or (old.status = 'paid') <> (new.status = 'paid')
    or (old.partner_id, old.currency, old.program_id) <> (new.partner_id, new.currency, new.program_id)
  )
)
execute function program.write_entries_of_changed_commission();
create or replace trigger entries_only_added before update or delete on program.commission_entry
for each row execute function program.refuse_change_of_entry();
