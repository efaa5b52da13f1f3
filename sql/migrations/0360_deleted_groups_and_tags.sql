-- A group or tag of many partners is hidden while a job takes it from them, and deleted outright after that.
alter table program.partner_group add column deleted_at timestamptz(3);
comment on column program.partner_group.deleted_at is 'Since when it is deleted: a job is moving its partners. Null: it is not.';
alter table program.tag add column deleted_at timestamptz(3);
comment on column program.tag.deleted_at is 'Since when it is deleted: a job is removing it from its partners. Null: it is not.';

-- Its name is free at once.
drop index program.tag_name_unique;
create unique index tag_name_unique on program.tag (organization_id, program_id, name_key) where deleted_at is null;
