-- How it is seen that an invited prospect joined: by an address, or by the token of the invitation, which the new partner carries.

alter table recruitment.prospect add column invitation_token text collate "C";
comment on column recruitment.prospect.invitation_token is 'Random: of the link by which an invited prospect joins. A partner that carries it is the prospect.';
-- Two random UUIDs hashed: as many unknown bits as those of new invitations.
update recruitment.prospect t
set invitation_token = md5(gen_random_uuid()::text || gen_random_uuid()::text)
where t.invited_at is not null;
create unique index prospect_invitation_unique on recruitment.prospect (organization_id, invitation_token) where invitation_token is not null;
create index prospect_waiting on recruitment.prospect (organization_id, brand_id, id) where invited_at is not null and signed_up_at is null;

alter table program.partner add column invitation_token text collate "C";
comment on column program.partner.invitation_token is 'The token of the invitation by which the partner came, as it was sent. It may be of nobody.';

create table recruitment.joining_cursor (
  organization_id text collate "C" not null references core.organization on delete cascade,
  program_id text collate "C" not null,
  position bigint not null default 0,
  primary key (organization_id, program_id),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table recruitment.joining_cursor is 'Up to which position of the event log partners of a program were looked for among invited prospects.';

call core.protect_tenant_table('recruitment.joining_cursor');
