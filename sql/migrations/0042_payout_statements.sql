-- The numbers of statements, and mail with an attachment.

alter table program.payout add column statement_number text;
comment on column program.payout.statement_number is 'The number of its statement, from when it was first paid: "2026-00042".';
create unique index payout_statement_number on program.payout (organization_id, program_id, statement_number) where statement_number is not null;
create index payout_not_numbered on program.payout (organization_id, program_id)
  where status = 'paid' and livemode and statement_number is null;

create table program.statement_count (
  organization_id text collate "C" not null,
  program_id text collate "C" not null,
  year integer not null,
  statements bigint not null,
  primary key (organization_id, program_id, year),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.statement_count is 'How many statements of payouts that were paid in a year are numbered.';
call core.protect_tenant_table('program.statement_count');

alter table core.outgoing_mail
  add column attachment_name text,
  add column attachment_type text,
  add column attachment bytea,
  add constraint outgoing_mail_attachment_is_whole check (num_nonnulls(attachment_name, attachment_type, attachment) in (0, 3));
comment on column core.outgoing_mail.attachment is 'The bytes of a file that goes with it, the same each time that it is sent.';
