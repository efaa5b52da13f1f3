-- A handle that was changed stays in URLs, bookmarks and newsletters: for a while it still leads to its partner.
create table program.handle_alias (
  organization_id text collate "C" not null,
  program_id text collate "C" not null,
  handle text collate "C" not null,
  partner_id text collate "C" not null,
  expires_at timestamptz(3) not null,
  primary key (organization_id, program_id, handle),
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, partner_id) references program.partner on delete cascade
);
comment on table program.handle_alias is 'Former handles of partners: until they expire, clicks by them count for the partner, and nobody else can take them.';
create index handle_alias_by_partner on program.handle_alias (organization_id, partner_id);
call core.protect_tenant_table('program.handle_alias');
