create table program.tag (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  name text not null,
  name_key text not null generated always as (lower(name)) stored,
  color text not null constraint tag_color_shape check (color ~ '^#[0-9A-Fa-f]{6}$'),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
create unique index tag_name_unique on program.tag (organization_id, program_id, name_key);
create index tag_by_program on program.tag (organization_id, program_id, id);

create table program.partner_tag (
  organization_id text collate "C" not null,
  partner_id text collate "C" not null,
  tag_id text collate "C" not null,
  primary key (organization_id, partner_id, tag_id),
  foreign key (organization_id, partner_id) references program.partner on delete cascade,
  foreign key (organization_id, tag_id) references program.tag on delete cascade
);
create index partner_tag_by_tag on program.partner_tag (organization_id, tag_id, partner_id);

create table program.application (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  group_id text collate "C",
  partner_id text collate "C",
  email text not null,
  email_key text not null generated always as (lower(email)) stored,
  answers jsonb,
  source text,
  status text not null default 'pending'
    constraint application_status_known check (status in ('pending', 'approved', 'rejected', 'withdrawn')),
  reviewed_by_user_id text collate "C",
  reviewed_at timestamptz(3),
  rejection_reason text,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, group_id) references program.partner_group,
  foreign key (organization_id, partner_id) references program.partner
);
comment on table program.application is 'A wish to become a partner, in the review queue until somebody decides.';
create unique index application_one_pending_a_partner on program.application (organization_id, partner_id) where status = 'pending';
create index application_by_program on program.application (organization_id, program_id, id);
create index application_by_status on program.application (organization_id, program_id, status, id);
create index application_by_email on program.application (organization_id, program_id, email_key);

call core.protect_tenant_table('program.tag');
call core.protect_tenant_table('program.partner_tag');
call core.protect_tenant_table('program.application');
