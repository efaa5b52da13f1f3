-- Of groups and tags, rows are deleted outright. Lists took any id of theirs as a cursor; now it must be one that they have, or had.
create table core.deleted_object (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  parent_id text collate "C" not null,
  deleted_at timestamptz(3) not null,
  primary key (organization_id, id)
);
comment on table core.deleted_object is 'Ids of objects whose rows are deleted outright: they stay cursors of the lists that they were in.';
comment on column core.deleted_object.parent_id is 'Whose list it was in: the id of its program.';
call core.protect_tenant_table('core.deleted_object');

-- Values of links that differ in letter case alone are one value: migration 0039 marks those that exist.
alter table program.link add column value_shared boolean not null default false;
comment on column program.link.value_shared is
  'An older link of the program had the value in other letter case before letter case was ignored: this one is found by its exact value.';
