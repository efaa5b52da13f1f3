-- The weeks to come get their partitions; weeks that ended more than 30 days before `at` are dropped, which is how the log is kept
-- "30 days" without deleting a row. The ids of test events fall into no week: theirs are few, and deleted, before requests have to wait for
-- a lock. As in core.ensure_weekly_partitions, it fails with 55P03 where the lock is not free soon.
create or replace procedure webhooks.keep_partitions(at timestamptz, event_prefix text, delivery_prefix text)
language plpgsql
set lock_timeout = '500ms'
as $$
declare
  past record;
  part regclass;
begin
  delete from webhooks.event_default where created_at < at - interval '30 days';
  call core.ensure_weekly_partitions('webhooks.event', event_prefix, at, at + interval '5 weeks');
  call core.ensure_weekly_partitions('webhooks.delivery', delivery_prefix, at, at + interval '5 weeks');
  call core.ensure_weekly_partitions('webhooks.attempt', delivery_prefix, at, at + interval '5 weeks');
  -- Room on the pages for the updates of their rows, see migration 0012.
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
    where i.inhparent in ('webhooks.event'::regclass, 'webhooks.delivery'::regclass, 'webhooks.attempt'::regclass)
      and c.relname ~ '_\d{8}$'
      and to_date(right(c.relname, 8), 'YYYYMMDD') + 7 < (at - interval '30 days')::date
  loop
    execute format('drop table %s', past.partition);
  end loop;
end
$$;
