-- What differs between products whose webhooks run through this machinery travels with their rows.

alter table webhooks.endpoint
  add column https_only boolean not null default false,
  add column livemode boolean not null default true;
comment on column webhooks.endpoint.program_id is 'What it listens to: a program, or whatever else a product tells events of.';
comment on column webhooks.endpoint.https_only is 'Nothing is sent to it over http, whatever its URL says.';
comment on column webhooks.endpoint.livemode is 'Whether it receives live events or those of tests: never both.';

-- What was told before an endpoint was made or switched on is not its business, however late it is fanned out.
alter table webhooks.endpoint add column listens_from bigint not null default 0;
alter table webhooks.endpoint alter column listens_from set default nextval('webhooks.event_position');
comment on column webhooks.endpoint.listens_from is 'The position in the event log from which on it receives.';

alter table webhooks.event add column livemode boolean not null default true;

alter table webhooks.pending_event
  add column livemode boolean not null default true,
  add column delivery_prefix text not null default 'whd';
comment on column webhooks.pending_event.delivery_prefix is 'Of the ids of its deliveries.';

-- The weeks' partitions of a prefix besides the first one carry it in their names.
create or replace procedure core.ensure_weekly_partitions(parent regclass, prefix text, first timestamptz, last timestamptz)
language plpgsql
as $$
declare
  week timestamptz;
  name text;
  schema_name text := (select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = parent);
  parent_name text := (select c.relname from pg_class c where c.oid = parent);
  infix text := case when prefix in ('evt', 'whd', 'clk') then '' else '_' || prefix end;
begin
  for week in
    select generate_series(date_trunc('week', first at time zone 'UTC'), date_trunc('week', last at time zone 'UTC'), '1 week')
      at time zone 'UTC'
  loop
    name := parent_name || infix || '_' || to_char(week at time zone 'UTC', 'YYYYMMDD');
    if to_regclass(format('%I.%I', schema_name, name)) is null then
      execute format(
        'create table %I.%I partition of %s for values from (%L) to (%L)',
        schema_name, name, parent,
        prefix || '_' || core.id_time_part(week),
        prefix || '_' || core.id_time_part(week + interval '7 days')
      );
    end if;
  end loop;
end
$$;

drop function if exists webhooks.write_events(text, text, timestamptz, json);
drop procedure if exists webhooks.keep_partitions(timestamptz);
