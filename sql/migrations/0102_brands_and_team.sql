-- Brands, and the people who recruit for them.

create table recruitment.brand (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  name text not null,
  website_url text not null,
  keywords text[] not null default '{}',
  competitors text[] not null default '{}',
  languages text[] not null default '{}',
  countries text[] not null default '{}',
  channels text[] not null default '{}',
  program_id text collate "C",
  sender_company text,
  postal_address text,
  privacy_url text,
  default_timezone text not null default 'UTC',
  scan_schedule text not null default 'weekly' constraint brand_scan_schedule_known check (scan_schedule in ('weekly', 'off')),
  scan_weekday smallint not null default 1 constraint brand_scan_weekday_known check (scan_weekday between 1 and 7),
  scan_ceiling_minor bigint constraint brand_scan_ceiling_not_negative check (scan_ceiling_minor >= 0),
  retention_days integer not null default 180 constraint brand_retention_positive check (retention_days > 0),
  last_scan_at timestamptz(3),
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  foreign key (organization_id, program_id) references program.program on delete set null (program_id)
);
comment on table recruitment.brand is 'What affiliates are recruited for: where they are looked for, and who writes to them.';
comment on column recruitment.brand.scan_weekday is 'ISO 8601: 1 is Monday. The weekly scan begins on that day in default_timezone.';
comment on column recruitment.brand.scan_ceiling_minor is 'What one scan may spend on its providers, in minor units of US dollars. Null: any amount.';
create index brand_by_program on recruitment.brand (organization_id, program_id) where program_id is not null;

create table recruitment.team_member (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  user_id text collate "C" not null,
  name text,
  email text not null,
  role text not null constraint team_member_role_known check (role in ('owner', 'admin', 'member', 'viewer')),
  removed_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint team_member_user_unique unique (organization_id, user_id),
  foreign key (organization_id, user_id) references core.user_account on delete cascade
);
comment on table recruitment.team_member is 'A person of the organization in recruitment (tm_). Each user is one; one who was removed stays, for what they did.';

call core.protect_tenant_table('recruitment.brand');
call core.protect_tenant_table('recruitment.team_member');

insert into recruitment.team_member (organization_id, id, user_id, name, email, role, created_at, updated_at)
select u.organization_id, 'tm_' || substr(u.id, 5), u.id, u.name, u.email, u.role, u.created_at, u.created_at
from core.user_account u;
