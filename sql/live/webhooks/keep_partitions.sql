-- Returns whether anything of a range of ids, of events or of deliveries, waits to be delivered.
create or replace function webhooks.waits(first_id text, after_id text) returns boolean
language sql stable
as $$
  select exists (
    select from webhooks.pending_event p
    where p.event_id >= first_id collate "C" and p.event_id < after_id collate "C"
  ) or exists (
    select from webhooks.queued_delivery q
    where (q.event_id >= first_id collate "C" and q.event_id < after_id collate "C")
      or (q.delivery_id >= first_id collate "C" and q.delivery_id < after_id collate "C")
  ) or exists (
    select from webhooks.delivery d
    where d.next_attempt_at is not null
      and (
        (d.event_id >= first_id collate "C" and d.event_id < after_id collate "C")
        or (d.id >= first_id collate "C" and d.id < after_id collate "C")
      )
  )
$$;

-- The weeks to come get their partitions; weeks that ended longer ago than they are kept (30 days) are dropped, which is how the log is kept "30 days" without
-- deleting a row. 30 days by Postgres' clock: whoever asks for a later time gets no more. A week of which something waits to be delivered
-- stays until it is. The ids of test events fall into no week, nor do those of weeks that got no partition in time: these rows are deleted, before
-- requests have to wait for a lock. As in core.ensure_weekly_partitions, it fails with 55P03 where the lock is not free soon.
create or replace procedure webhooks.keep_partitions(
  at timestamptz, event_prefix text, delivery_prefix text, keep interval default '30 days'
)
language plpgsql
set lock_timeout = '500ms'
as $$
declare
  today constant timestamptz := least(at, now());
  past record;
  part regclass;
begin
  delete from webhooks.event_default e
  where e.created_at < today - keep and not webhooks.waits(e.id, e.id || ' ');
  delete from webhooks.attempt_default a
  where a.at < today - keep and not webhooks.waits(a.delivery_id, a.delivery_id || ' ');
  delete from webhooks.delivery_default d
  where d.created_at < today - keep and not webhooks.waits(d.id, d.id || ' ');
  call core.ensure_weekly_partitions('webhooks.event', event_prefix, today, today + interval '5 weeks');
  call core.ensure_weekly_partitions('webhooks.delivery', delivery_prefix, today, today + interval '5 weeks');
  call core.ensure_weekly_partitions('webhooks.attempt', delivery_prefix, today, today + interval '5 weeks');
  -- Room on the pages for the updates of their rows, see webhooks.delivery in sql/migrations.
  for part in
    select c.oid::regclass
    from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'webhooks.delivery'::regclass
      and c.reloptions is null
  loop
    execute format('alter table %s set (fillfactor = 60)', part);
  end loop;
  for past in
    select c.oid::regclass as partition
    from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    -- FOR VALUES FROM ('evt_01k…') TO ('evt_01k…')
    cross join lateral (select string_to_array(pg_get_expr(c.relpartbound, c.oid), '''') as ids) as bound
    where i.inhparent in ('webhooks.event'::regclass, 'webhooks.delivery'::regclass, 'webhooks.attempt'::regclass)
      and c.relname ~ '_\d{8}$'
      and to_date(right(c.relname, 8), 'YYYYMMDD') + 7 < (today - keep)::date
      and not webhooks.waits(bound.ids[2], bound.ids[4])
  loop
    execute format('drop table %s', past.partition);
  end loop;
end
$$;
