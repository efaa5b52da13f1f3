-- What the webhooks of a second product need besides those of the first: types of endpoints, team chats among them, and its own log.

-- Whoever writes to several of these tables holds one of the two locks.
select pg_advisory_xact_lock(2, 0), pg_advisory_xact_lock(2, 1);

alter table webhooks.endpoint
  add column type text not null default 'live'
    constraint endpoint_type_known check (type in ('live', 'test', 'slack', 'discord', 'teams'));
comment on column webhooks.endpoint.type is
  'test: receives the events of tests alone. slack, discord, teams: an incoming webhook of that tool, whose whole address is the secret.';
comment on column webhooks.endpoint.url is 'Where events are sent. Of a team chat: its host and its last four characters; the address is in secret.';
comment on column webhooks.endpoint.secret is 'whsec_…, or the address of a team chat: AES-256-GCM with the key''s id in front.';

alter table webhooks.event add column chat_text text;
comment on column webhooks.event.chat_text is 'What team chats are told of it; null where the product has none.';

-- Written anew with another result, or another parameter.
drop function if exists webhooks.begin_runs(text[], text, interval, integer);
drop function if exists webhooks.enqueue_due_retries(timestamptz, integer);

call core.ensure_weekly_partitions('webhooks.event', 'fev', now(), now() + interval '5 weeks');
call core.ensure_weekly_partitions('webhooks.delivery', 'fwd', now(), now() + interval '5 weeks');
call core.ensure_weekly_partitions('webhooks.attempt', 'fwd', now(), now() + interval '5 weeks');
do $$
declare
  part regclass;
begin
  -- Without a policy of its own: whoever is granted a partition sees nothing, and reads through the parent.
  for part in
    select c.oid::regclass
    from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    where i.inhparent in ('webhooks.event'::regclass, 'webhooks.delivery'::regclass, 'webhooks.attempt'::regclass)
      and not c.relrowsecurity
  loop
    execute format('alter table %s enable row level security', part);
  end loop;
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
end
$$;
