-- One known value under the encryption key: a process with another key is refused at its start, and not by the first secret that it cannot read.
create table core.encryption_check (
  id boolean primary key default true constraint encryption_check_is_one_row check (id),
  value bytea not null
);

comment on table core.encryption_check is 'A known value, encrypted with the first key of RAIL_ENCRYPTION_KEY: what processes compare their keys with at their start.';
