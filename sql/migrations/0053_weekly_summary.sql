-- A summary of the week by mail to the owner of the organization, for programs that want it. Mail may have an HTML part.

alter table program.program add column weekly_summary boolean not null default false;
comment on column program.program.weekly_summary is 'Whether the owner of the organization gets a summary of each week by mail.';

create table program.weekly_summary (
  organization_id text collate "C" not null,
  program_id text collate "C" not null,
  week text not null,
  mail_id text collate "C" not null,
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, program_id, week),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.weekly_summary is 'The summaries that were mailed: one for each program and ISO week.';
call core.protect_tenant_table('program.weekly_summary');

alter table core.outgoing_mail add column html text;
comment on column core.outgoing_mail.html is 'The same as the text, for mail programs that show HTML. Null: there is the text alone.';
