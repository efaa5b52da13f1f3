-- Entries of commissions: the one place that writes them, for every way in which a commission is inserted or changed. What a commission counts is
-- its amount, or 0 when it is voided, rejected or deleted.

create or replace function program.counted_minor(amount_minor bigint, status text, deleted_at timestamptz) returns bigint
language sql immutable parallel safe
return case when deleted_at is null and program.is_counted(status) then amount_minor else 0 end;
comment on function program.counted_minor(bigint, text, timestamptz) is 'What a commission counts: its amount, or 0 when it is voided, rejected or deleted.';

-- States why the next statement that inserts or changes commissions does so; it is forgotten with that statement, and with the transaction. Call it
-- before that statement, or in its conditions: the trigger that reads it runs when the whole statement is done, whatever the order of its parts.
-- The facts that the row itself says (a sale's first commission, a bonus, a payment, the reason of a void) needs no other word.
create or replace function program.because(cause text, refund_id text default '') returns boolean
language sql volatile
return set_config('rail.cause', cause || ' ' || refund_id, true) is not null;

create or replace function program.stated_cause(
  organization text, commission_id text, changed_at timestamptz, out cause text, out refund_id text, out effective_at timestamptz
)
language plpgsql stable
as $$
declare
  stated constant text := current_setting('rail.cause', true);
begin
  cause := split_part(stated, ' ', 1);
  if (cause in ('sale_refunded', 'refund_reversed', 'sale_corrected', 'sale_deleted', 'edited_by_hand', 'partner_deleted', 'payout_returned')) is not true then
    raise exception 'Why the commission % changes is not stated, or unknown (%): call program.because in the statement that changes it.',
      commission_id, coalesce(cause, '');
  end if;
  refund_id := nullif(split_part(stated, ' ', 2), '');
  effective_at := coalesce(
    (
      select case when f.reversed_at is null then f.refunded_at else f.reversed_at end
      from program.refund f
      where f.organization_id = organization and f.id = stated_cause.refund_id
    ),
    changed_at
  );
end
$$;

create or replace function program.forget_cause() returns trigger
language plpgsql
as $$
begin
  perform set_config('rail.cause', '', true);
  return null;
end
$$;
create or replace trigger cause_forgotten after insert or update on program.commission for each statement
when (current_setting('rail.cause', true) <> '')
execute function program.forget_cause();

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

-- A commission that a sale earned, as nearly every one is, takes the shortest way: one row, and the time of its sale.
create or replace function program.write_entries_of_new_commission() returns trigger
language plpgsql
as $$
declare
  sold_at timestamptz;
  why record;
begin
  if program.counted_minor(new.amount_minor, new.status, new.deleted_at) = 0 then
    return null;
  end if;
  if new.kind = 'sale' then
    select s.occurred_at into sold_at
    from program.sale s
    where s.organization_id = new.organization_id and s.id = new.sale_id;
    insert into program.commission_entry
      (organization_id, commission_id, program_id, partner_id, sale_id, kind, cause, amount_minor, currency, effective_at, posted_at)
    values (
      new.organization_id, new.id, new.program_id, new.partner_id, new.sale_id, 'earned', 'sale', new.amount_minor, new.currency,
      coalesce(sold_at, new.created_at), now()
    );
  elsif new.sale_id is null then
    perform program.write_entry(
      new, case new.kind when 'clawback' then 'clawed_back' else 'earned' end, case new.kind when 'clawback' then 'paid_twice' else new.kind end,
      null, null, new.amount_minor, new.created_at
    );
  else
    select c.cause, c.refund_id, c.effective_at into why
    from program.stated_cause(new.organization_id, new.id, new.created_at) c;
    perform program.write_entry(
      new, case when new.kind = 'clawback' then 'clawed_back' when new.clawback_of is not null then 'adjusted' else 'earned' end,
      case why.cause when 'edited_by_hand' then 'sale_corrected' else why.cause end,
      why.refund_id, null, new.amount_minor, why.effective_at
    );
  end if;
  if new.status = 'paid' then
    perform program.write_entry(new, 'paid', 'payout_paid', null, new.payout_id, -new.amount_minor, new.paid_at);
  end if;
  return null;
end
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
    from program.stated_cause(new.organization_id, new.id, new.updated_at) c;
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

create or replace trigger entries_inserted after insert on program.commission
for each row execute function program.write_entries_of_new_commission();
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

comment on column program.commission_entry.posted_at is 'When the transaction that wrote it began: entries of a month do not change once the transactions of its end are over.';
