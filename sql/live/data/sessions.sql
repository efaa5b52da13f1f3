-- A role can undo what is set on it (statement_timeout, read-only), and the end of its validity ends no session: each worker calls this every five
-- seconds. It ends the sessions of logins that were revoked or have expired, that hold an advisory lock, or whose statement or open transaction
-- is older than it may be, whatever it did last: an open transaction keeps vacuum from its work, and its locks keep partitions from being made.
-- In other databases of the server less is taken from PUBLIC, so that a session in one of them is ended, too. Whatever is not idle runs a
-- statement, also a function that is called by its message of the protocol ('fastpath function call'). The statements NOTIFY and LISTEN cannot be
-- taken from anybody. Each commit after a NOTIFY takes one lock of the whole server (an object of no database), which every job that is enqueued
-- waits for: a session that has notified, or that holds or waits for this lock, is ended; all are where the queue fills up, because a commit that
-- enqueues a job would fail.
create or replace function data.end_sessions() returns table (pid integer, role_name text, reason text)
language sql volatile
as $$
  with held_lock as materialized (
    select k.pid, k.locktype from pg_locks k
    where k.locktype = 'advisory'
      or k.locktype = 'object' and k.database = 0 and k.classid = 'pg_database'::regclass and k.mode = 'AccessExclusiveLock'
  ),
  session as (
    select a.pid, l.role_name,
      case
        when l.revoked_at is not null then 'the login is revoked'
        when l.expires_at <= clock_timestamp() then 'the login has expired'
        when a.datname <> current_database() then 'it is connected to another database'
        when a.state not like 'idle%' and clock_timestamp() - a.query_start > l.statement_timeout_ms * interval '1 millisecond'
          then 'the statement runs too long'
        when clock_timestamp() - a.xact_start > greatest(l.statement_timeout_ms * interval '1 millisecond', interval '1 minute')
          then 'the transaction is open for too long'
        when pg_notification_queue_usage() > 0.1 then 'notifications fill their queue'
        -- At the begin of a statement, behind a comment or a line too.
        when a.query ~* '(^|;|\*/|\n)\s*notify\M' then 'it notifies'
        when exists (select from held_lock k where k.pid = a.pid and k.locktype = 'object') then 'it notifies'
        when exists (select from held_lock k where k.pid = a.pid) then 'it holds an advisory lock'
      end as reason
    from pg_stat_activity a
    join core.data_login l on l.role_name = a.usename::text
  )
  select s.pid, s.role_name, s.reason
  from session s
  where s.reason is not null and pg_terminate_backend(s.pid)
$$;
comment on function data.end_sessions() is 'Ends sessions of data teams that run too long or notify, or whose login is revoked or has expired.';
