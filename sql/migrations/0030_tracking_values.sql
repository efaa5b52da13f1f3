-- Handles and the values of links are one space: whoever takes one looks for the other.
alter table program.link add column value_key text collate "C" not null generated always as (lower(value)) stored;
comment on column program.link.value_key is 'The value with letter case ignored: what no other partner''s handle may be, under the program''s url_params.';
create index link_by_value on program.link (organization_id, program_id, value_key) where deleted_at is null;
