create table program.risk_flag (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C",
  customer_id text collate "C",
  kind text not null,
  severity text not null constraint risk_flag_severity_known check (severity in ('low', 'medium', 'high')),
  evidence jsonb not null,
  status text not null default 'open' constraint risk_flag_status_known check (status in ('open', 'confirmed', 'dismissed')),
  note text,
  resolved_by text,
  resolved_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, id),
  constraint risk_flag_note_to_close check (status = 'open' or note is not null),
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, partner_id) references program.partner,
  foreign key (organization_id, customer_id) references program.customer
);
comment on table program.risk_flag is 'What a monitoring rule noticed, until a person closes it with a note.';
create unique index risk_flag_one_open on program.risk_flag (organization_id, program_id, kind, partner_id, customer_id)
  nulls not distinct where status = 'open';
create index risk_flag_by_program on program.risk_flag (organization_id, program_id, id);
create index risk_flag_by_status on program.risk_flag (organization_id, program_id, status, id);
create index risk_flag_by_partner on program.risk_flag (organization_id, partner_id, id);
create index risk_flag_by_customer on program.risk_flag (organization_id, customer_id, id);

alter table program.partner add column mailbox text;
comment on column program.partner.mailbox is 'The email with case, dots and plus tags folded: two partners of one mailbox are suspicious.';
create index partner_by_mailbox on program.partner (organization_id, program_id, mailbox) where deleted_at is null;
create index click_by_address on program.click (organization_id, partner_id, ip_hash, id);

call core.protect_tenant_table('program.risk_flag');
