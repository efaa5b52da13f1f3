-- The rules that hold of the inbox of billing processors. A clean database gives no row.
create or replace function program.audit_processors()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  select 'an event of a processor waits for what is not known', e.organization_id, e.id, format('%s is known', e.waiting_for)
  from program.processor_event e
  join program.processor_object o on o.organization_id = e.organization_id and o.program_id = e.program_id
    and o.processor = e.processor and o.external_id = e.waiting_for
  where e.status = 'waiting'

  union all
  select 'what a charge at a processor is here exists', o.organization_id, o.program_id, format('%s is %s', o.external_id, o.object_id)
  from program.processor_object o
  left join program.sale s on s.organization_id = o.organization_id and s.id = o.object_id
  where starts_with(o.object_id, 'sale_') and s.id is null

  union all
  select 'a sale is what its id is at the processor', s.organization_id, s.id, format('%s is %s', o.external_id, coalesce(o.object_id, 'nothing'))
  from program.processor_object o
  join program.program p on p.organization_id = o.organization_id and p.id = o.program_id and p.processor = o.processor
  join program.sale s on s.organization_id = o.organization_id and s.program_id = o.program_id and s.external_charge_id = o.external_id
    and s.deleted_at is null
  where o.object_id is distinct from s.id
    -- The job that makes it so, after the request that recorded the sale.
    and not exists (
      select from graphile_worker.jobs j
      where j.task_identifier = 'program/release_processor_events' and (j.attempts < j.max_attempts or j.locked_at is not null)
    )

  union all
  select 'a charge that is a sale is not kept as one of nobody', e.organization_id, e.id, format('%s is %s', e.external_object_id, o.object_id)
  from program.processor_event e
  join program.processor_object o on o.organization_id = e.organization_id and o.program_id = e.program_id
    and o.processor = e.processor and o.external_id = e.external_object_id
  where e.status = 'ignored' and e.reason = 'unattributed' and e.type = 'invoice.paid' and starts_with(o.object_id, 'sale_')
$$;
comment on function program.audit_processors() is 'Violations of the inbox of billing processors; a clean database gives no row.';
