-- A role can undo what is set on it (statement_timeout, read-only), and the end of its validity ends no session: a worker calls this every
-- minute. It ends the sessions of logins that were revoked or have expired, that hold an advisory lock, or whose statement or open transaction
-- is older than it may be, whatever it did last: an open transaction keeps vacuum from its work, and its locks keep partitions from being made.
-- In other databases of the server nothing is taken from PUBLIC, so that a session in one of them is ended, too. Whatever is not idle runs a
-- statement, also a function that is called by its message of the protocol ('fastpath function call'). NOTIFY and LISTEN cannot be taken from
-- anybody: where their queue fills up, which would keep jobs from being enqueued, all sessions of logins are ended.
create or replace function data.end_sessions() returns table (pid integer, role_name text, reason text)
language sql volatile
as $$
  with session as (
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
        when exists (select from pg_locks k where k.pid = a.pid and k.locktype = 'advisory') then 'it holds an advisory lock'
      end as reason
    from pg_stat_activity a
    join core.data_login l on l.role_name = a.usename::text
  )
  select s.pid, s.role_name, s.reason
  from session s
  where s.reason is not null and pg_terminate_backend(s.pid)
$$;
comment on function data.end_sessions() is 'Ends sessions of data teams that run too long, or whose login is revoked or has expired.';
