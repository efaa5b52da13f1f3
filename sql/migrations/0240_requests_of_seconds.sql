-- A row that is updated by each request leaves a version behind each time, and while any transaction is open that might still see them, they
-- stay: the next request walks past them all. A row of its own for each second is found without those of the seconds before.
drop table core.rate_limit_window;

-- Unlogged: what it holds is worth one second. A commit that touches only this table does not wait for the disk.
create unlogged table core.rate_limit_window (
  second bigint not null,
  api_key_id text collate "C" not null,
  used integer not null,
  primary key (second, api_key_id)
) with (fillfactor = 50);
comment on table core.rate_limit_window is 'Requests that a key made in a second, counted exactly over all API replicas. Seconds that are over are deleted.';

-- The same of the watch, which is renewed every 200 ms and looked at by each request.
drop table core.watch;

create unlogged table core.watch (
  name text not null,
  slot bigint not null,
  watched_by text collate "C" not null,
  primary key (name, slot)
);
comment on table core.watch is 'Work that a worker looks for by itself for the whole of a tenth of a second: nobody needs to enqueue a job for it. Whatever is missed is swept up.';
comment on column core.watch.slot is 'Tenths of a second since 1970.';
