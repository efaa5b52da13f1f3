-- What waits for an endpoint stands in a table of its own, one row a place, gone when it is settled. Places come from one sequence, taken
-- under the fan-out's lock. Whoever gives places and whoever sends so never wait for each other's rows: before, a fan-out held the lanes
-- of all endpoints that it told, and turns stood still until it committed.

create sequence webhooks.place;
comment on sequence webhooks.place is 'Places in all endpoints'' sequences, taken under the fan-out''s advisory lock: they are committed in their order.';
grant usage on sequence webhooks.place to rail_api;

create table webhooks.standing (
  endpoint_id text collate "C" not null,
  place bigint not null,
  organization_id text collate "C" not null,
  delivery_id text collate "C" not null,
  event_id text collate "C" not null,
  event_type text not null,
  attempt integer not null default 0,
  request_body text,
  primary key (endpoint_id, place)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
comment on table webhooks.standing is 'Deliveries that wait for their turn, in the endpoints'' sequences. Rows go when the attempt is written.';
comment on column webhooks.standing.attempt is 'Attempts made before.';
comment on column webhooks.standing.request_body is 'The body where it is not that of a logged event: a test event.';
call core.protect_tenant_table('webhooks.standing');

insert into webhooks.standing (endpoint_id, place, organization_id, delivery_id, event_id, event_type, attempt, request_body)
select d.endpoint_id, d.place, d.organization_id, d.id, d.event_id, d.event_type, d.attempt, d.request_body
from webhooks.delivery d
join webhooks.lane l using (endpoint_id)
where d.place > l.done_place;

select setval('webhooks.place', (select coalesce(max(l.last_place), 0) + 1 from webhooks.lane l));

alter table webhooks.lane drop column last_place, add column slow boolean not null default false;
comment on table webhooks.lane is 'Who sends to an endpoint: whoever holds the lease is the only one who does.';
comment on column webhooks.lane.done_place is 'Everything up to this place is settled, or waits to be tried again.';
comment on column webhooks.lane.slow is 'The last attempt took long: its turns run on slots of their own, and keep nobody else waiting.';

drop index webhooks.delivery_by_place;
alter table webhooks.delivery alter column place drop not null;
comment on column webhooks.delivery.place is 'Where it stands or stood last. A retry or a replay stands at the end.';

drop function if exists webhooks.fan_out(integer);
drop function if exists webhooks.is_idle(timestamptz);
drop function if exists webhooks.wake_lanes(text[]);
drop function if exists webhooks.sweep();
drop function if exists webhooks.place_due_retries(timestamptz, integer);
drop function if exists webhooks.free_leases(text[]);
drop function if exists webhooks.begin_turn(text, text, interval, integer);
drop function if exists webhooks.end_turn(text, bigint, json);

-- A delivery is updated once or twice, and none of its indexed columns then: with room on its page, no index is touched.
do $$
declare
  part regclass;
begin
  for part in select i.inhrelid::regclass from pg_inherits i where i.inhparent = 'webhooks.delivery'::regclass loop
    execute format('alter table %s set (fillfactor = 60)', part);
  end loop;
end
$$;

-- Under load a worker looks for events every few milliseconds anyway: then a commit need not enqueue a job for each, which costs more than
-- all else of telling it, and makes commits wait for each other (NOTIFY).
create unlogged table core.watch (
  name text primary key,
  watched_by text collate "C" not null,
  until timestamptz not null
);
comment on table core.watch is 'Work that a worker looks for by itself until then: nobody needs to enqueue a job for it. Whatever is missed is swept up.';
