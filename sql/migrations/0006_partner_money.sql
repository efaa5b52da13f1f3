alter table program.partner
  add column tax_form_status text not null default 'none'
    constraint partner_tax_form_status_known check (tax_form_status in ('none', 'submitted', 'verified', 'rejected')),
  add column tax_form_updated_at timestamptz(3);
comment on column program.partner.tax_form_status is 'Tax forms expose their status only.';

create table program.payout_method (
  organization_id text collate "C" not null,
  partner_id text collate "C" not null,
  method text not null,
  details bytea not null,
  hint text not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, partner_id),
  foreign key (organization_id, partner_id) references program.partner on delete cascade
);
comment on column program.payout_method.details is 'AES-256-GCM; never shown again but for the hint.';
comment on column program.payout_method.hint is 'The last four characters of what identifies the account.';

create table program.magic_link (
  organization_id text collate "C" not null,
  token_sha256 bytea not null,
  partner_id text collate "C" not null,
  expires_at timestamptz(3) not null,
  used_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, token_sha256),
  foreign key (organization_id, partner_id) references program.partner on delete cascade
);
comment on table program.magic_link is 'A sign-in link of a partner, good once and for 15 minutes. Only a hash of its token is stored.';
create unique index magic_link_by_token on program.magic_link (token_sha256);
create index magic_link_by_expiry on program.magic_link (expires_at);

call core.protect_tenant_table('program.payout_method');
call core.protect_tenant_table('program.magic_link');
