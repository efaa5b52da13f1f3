-- Payouts: batches that select what is due, the payouts of a batch, their attempts at a rail, and the credentials of rails.

alter table core.api_key add column user_id text collate "C",
  add constraint api_key_user foreign key (organization_id, user_id) references core.user_account (organization_id, id);
comment on column core.api_key.user_id is 'The person whose key it is. Null: a key of no person, which cannot approve payouts.';

alter table program.program
  add column payout_approval_required boolean not null default false,
  add column payout_limit_minor bigint constraint program_payout_limit_not_negative check (payout_limit_minor >= 0),
  add column payout_limits jsonb not null default '{}',
  add column min_payouts jsonb not null default '{}';
comment on column program.program.payout_approval_required is 'A batch is sent once another person than the one who made it has approved it.';
comment on column program.program.payout_limit_minor is 'The most that is sent in a UTC day, in minor units of the program''s currency.';
comment on column program.program.payout_limits is 'The most that is sent in a UTC day in other currencies: {"EUR": 100000}.';
comment on column program.program.min_payouts is 'The minimum balance for a payout in other currencies than the program''s: {"EUR": 5000}.';

create table program.payout_batch (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  stage text not null constraint payout_batch_stage_known check (stage in ('generating', 'awaiting_approval', 'ready')),
  cutoff timestamptz(3) not null,
  due_at timestamptz(3) not null,
  scheduled_for timestamptz(3),
  request_id text,
  created_by_user_id text collate "C",
  approved_by_user_id text collate "C",
  approved_at timestamptz(3),
  approval_required boolean not null,
  last_partner_id text collate "C" not null default '',
  partners_looked_at bigint not null default 0,
  payouts bigint not null default 0,
  amounts jsonb not null default '{}',
  not_eligible jsonb not null default '{}',
  generated_at timestamptz(3),
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, id),
  constraint payout_batch_cutoff_is_past check (cutoff <= created_at),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.payout_batch is 'A selection of what is due, by a schedule or by hand: one payout for each partner and currency.';
comment on column program.payout_batch.scheduled_for is 'The month''s first moment, for which the schedule made it. Null: made by hand.';
comment on column program.payout_batch.last_partner_id is 'Generation goes on after this partner.';
comment on column program.payout_batch.amounts is 'What its payouts came to when it was generated: {"USD": {"payouts": 2, "amount_minor": 5000}}.';
comment on column program.payout_batch.not_eligible is 'How many balances were not paid, by reason.';
create unique index payout_batch_one_a_month on program.payout_batch (organization_id, program_id, scheduled_for) where scheduled_for is not null;
create index payout_batch_by_program on program.payout_batch (organization_id, program_id, id) where deleted_at is null;
create index payout_batch_generating on program.payout_batch (created_at) where stage = 'generating' and deleted_at is null;

create table program.payout (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  batch_id text collate "C" not null,
  partner_id text collate "C" not null,
  amount_minor bigint not null constraint payout_amount_positive check (amount_minor > 0),
  fee_minor bigint constraint payout_fee_not_negative check (fee_minor >= 0),
  currency text not null constraint payout_currency_is_iso check (currency ~ '^[A-Z]{3}$'),
  status text not null constraint payout_status_known check (status in ('pending', 'processing', 'paid', 'failed')),
  livemode boolean not null default true,
  method text not null,
  external_id text,
  destination_hint text,
  period_start timestamptz(3) not null,
  period_end timestamptz(3) not null,
  due_at timestamptz(3) not null,
  due_told_at timestamptz(3),
  partner_told_of timestamptz(3),
  submitted_at timestamptz(3),
  paid_at timestamptz(3),
  failed_at timestamptz(3),
  attempt integer not null default 0,
  error_code text,
  error_message text,
  commission_count integer not null,
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, id),
  constraint payout_paid_has_time check ((status = 'paid') = (paid_at is not null)),
  constraint payout_failed_has_time check ((status = 'failed') = (failed_at is not null)),
  constraint payout_deleted_is_unpaid check (deleted_at is null or status in ('pending', 'failed')),
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, partner_id) references program.partner,
  foreign key (organization_id, batch_id) references program.payout_batch
);
comment on table program.payout is 'What a partner is paid at once in one currency. A deleted payout is kept for the books.';
comment on column program.payout.livemode is 'False: sent by a rail in test mode. It never counts as paid, and frees its commissions at its end.';
comment on column program.payout.due_told_at is 'When payout.due was emitted.';
comment on column program.payout.partner_told_of is 'The paid_at that the partner was emailed about.';
comment on column program.payout.attempt is 'How often it was sent: the number of its last attempt.';
create index payout_by_program on program.payout (organization_id, program_id, id) include (created_at, status) where deleted_at is null;
create index payout_by_partner on program.payout (organization_id, partner_id, id) where deleted_at is null;
create index payout_by_batch on program.payout (organization_id, batch_id, id) where deleted_at is null;
create index payout_open_by_batch on program.payout (organization_id, batch_id, id) include (partner_id)
  where status in ('pending', 'processing') and deleted_at is null;
create index payout_by_status on program.payout (organization_id, program_id, status, id) where deleted_at is null;
create index payout_not_told on program.payout (due_at) where status = 'pending' and due_told_at is null and deleted_at is null;

create table program.payout_attempt (
  organization_id text collate "C" not null,
  payout_id text collate "C" not null,
  number integer not null constraint payout_attempt_number_positive check (number > 0),
  id text collate "C" not null,
  program_id text collate "C" not null,
  rail text not null,
  mode text not null constraint payout_attempt_mode_known check (mode in ('test', 'live')),
  credentials_version integer,
  amount_minor bigint not null,
  currency text not null,
  request bytea not null,
  state jsonb not null default '{}',
  destination_hint text,
  status text not null
    constraint payout_attempt_status_known check (status in ('prepared', 'in_doubt', 'processing', 'paid', 'failed', 'returned')),
  reference text,
  file_id text collate "C",
  error_code text,
  error_message text,
  last_answer text,
  polls integer not null default 0,
  next_poll_at timestamptz(3),
  looked_up_at timestamptz(3),
  owner_told_at timestamptz(3),
  began_at timestamptz(3) not null,
  ended_at timestamptz(3),
  primary key (organization_id, id),
  constraint payout_attempt_number_unique unique (organization_id, payout_id, number),
  foreign key (organization_id, payout_id) references program.payout on delete cascade
);
comment on table program.payout_attempt is 'A payout as it was sent to its rail: the request stays as it is, so that a repetition sends the same.';
comment on column program.payout_attempt.id is 'The idempotency key: <payout id>-<number>.';
comment on column program.payout_attempt.request is 'AES-256-GCM: the transfer as it was sent, with its destination.';
comment on column program.payout_attempt.state is 'What the rail keeps between its calls, such as the id of a quote.';
comment on column program.payout_attempt.next_poll_at is 'When the rail is asked again. Null: never.';
create index payout_attempt_to_poll on program.payout_attempt (next_poll_at) where next_poll_at is not null;
create index payout_attempt_by_reference on program.payout_attempt (organization_id, program_id, reference) where reference is not null;
create index payout_attempt_by_file on program.payout_attempt (organization_id, file_id, id) where file_id is not null;

create table program.payout_file (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  batch_id text collate "C" not null,
  number integer not null,
  rail text not null,
  debtor bytea,
  created_at timestamptz(3) not null,
  primary key (organization_id, id),
  constraint payout_file_number unique (organization_id, batch_id, number),
  foreign key (organization_id, batch_id) references program.payout_batch on delete cascade
);
comment on table program.payout_file is 'A file for a bank or a wallet: its payouts, frozen when they were sent. The id is its message id.';
comment on column program.payout_file.debtor is 'AES-256-GCM: the account that pays, as it was when the file was made.';

create table program.rail (
  organization_id text collate "C" not null,
  program_id text collate "C" not null,
  id text collate "C" not null,
  rail text not null,
  version integer not null,
  mode text not null constraint rail_mode_known check (mode in ('test', 'live')),
  credentials bytea not null,
  account text,
  warnings text[] not null default '{}',
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, id),
  constraint rail_version unique (organization_id, program_id, rail, version),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.rail is 'The credentials of a payout rail, a row a version: attempts keep the version that they were sent with.';
comment on column program.rail.credentials is 'AES-256-GCM; never shown again.';
create unique index rail_current on program.rail (organization_id, program_id, rail) where deleted_at is null;

create table program.payout_sent (
  organization_id text collate "C" not null,
  program_id text collate "C" not null,
  day date not null,
  currency text not null,
  amount_minor numeric not null,
  owner_told_at timestamptz(3),
  primary key (organization_id, program_id, day, currency),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.payout_sent is 'What a program with a limit sent in a UTC day.';

create table program.payout_report (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  batch_id text collate "C" not null,
  kind text not null,
  message_id text not null,
  sha256 bytea not null,
  result jsonb not null,
  created_at timestamptz(3) not null,
  primary key (organization_id, id),
  constraint payout_report_once unique (organization_id, batch_id, sha256),
  foreign key (organization_id, batch_id) references program.payout_batch on delete cascade
);
comment on table program.payout_report is 'A status report of a bank that was taken in, and what it changed.';

alter table program.commission
  add constraint commission_in_payout_is_due_or_paid check (payout_id is null or (status in ('due', 'paid') and deleted_at is null)),
  add constraint commission_paid_by_payout check (status <> 'paid' or payout_id is not null),
  add constraint commission_paid_has_time check ((status = 'paid') = (paid_at is not null));
create index commission_payable on program.commission (organization_id, program_id, partner_id)
  where status in ('pending', 'approved', 'due') and payout_id is null and deleted_at is null;

call core.protect_tenant_table('program.payout_batch');
call core.protect_tenant_table('program.payout');
call core.protect_tenant_table('program.payout_attempt');
call core.protect_tenant_table('program.payout_file');
call core.protect_tenant_table('program.rail');
call core.protect_tenant_table('program.payout_sent');
call core.protect_tenant_table('program.payout_report');
