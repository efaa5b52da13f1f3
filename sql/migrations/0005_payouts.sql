-- Payouts: batches that select what is due, the payouts of a batch, their attempts at a rail, and the credentials of rails.

create table program.payout_method (
  organization_id text collate "C" not null,
  partner_id text collate "C" not null,
  method text not null,
  details bytea not null,
  hint text not null,
  held_until timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, partner_id),
  foreign key (organization_id, partner_id) references program.partner on delete cascade
);
comment on table program.payout_method is 'How a partner is paid. The account is encrypted.';
comment on column program.payout_method.details is 'AES-256-GCM; never shown again but for the hint.';
comment on column program.payout_method.hint is 'The last four characters of what identifies the account.';
comment on column program.payout_method.held_until is
  'Nothing is paid by it before: the partner changed it, and may not be who did. Null: payouts do not wait.';
call core.protect_tenant_table('program.payout_method');

create table program.tax_form (
  organization_id text collate "C" not null,
  partner_id text collate "C" not null,
  content bytea not null,
  submitted_at timestamptz(3) not null,
  primary key (organization_id, partner_id),
  foreign key (organization_id, partner_id) references program.partner on delete cascade
);
comment on table program.tax_form is 'The tax form that a partner submitted last. Its status is in program.partner.';
comment on column program.tax_form.content is 'The file with its name and type, AES-256-GCM. No operation of the API returns it.';
call core.protect_tenant_table('program.tax_form');

create table program.rail (
  organization_id text collate "C" not null,
  program_id text collate "C" not null,
  id text collate "C" not null,
  rail text not null,
  version integer not null,
  mode text not null constraint rail_mode_known check (mode in ('test', 'live')),
  credentials bytea not null,
  account text,
  warnings text[] not null default '{}'::text[],
  hint text not null default '',
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, id),
  constraint rail_version unique (organization_id, program_id, rail, version),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.rail is 'The credentials of a payout rail, a row a version: attempts keep the version that they were sent with.';
comment on column program.rail.credentials is 'AES-256-GCM; never shown again.';
comment on column program.rail.hint is 'The last four characters of what identifies the account or the key.';
create index rail_by_program on program.rail (program_id, rail);
create unique index rail_current on program.rail (organization_id, program_id, rail) where deleted_at is null;
call core.protect_tenant_table('program.rail');

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
  amounts jsonb not null default '{}'::jsonb,
  not_eligible jsonb not null default '{}'::jsonb,
  generated_at timestamptz(3),
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  constraint payout_batch_cutoff_is_past check (cutoff <= created_at),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.payout_batch is 'A selection of what is due, by a schedule or by hand: one payout for each partner and currency.';
comment on column program.payout_batch.scheduled_for is 'The month''s first moment, for which the schedule made it. Null: made by hand.';
comment on column program.payout_batch.last_partner_id is 'Generation goes on after this partner.';
comment on column program.payout_batch.amounts is 'What its payouts came to when it was generated: {"USD": {"payouts": 2, "amount_minor": 5000}}.';
comment on column program.payout_batch.not_eligible is 'How many balances were not paid, by reason.';
comment on column program.payout_batch.changed_in is 'The transaction that wrote the row last.';
create index payout_batch_by_change on program.payout_batch (organization_id, changed_in);
create index payout_batch_by_program on program.payout_batch (organization_id, program_id, id) where deleted_at is null;
create index payout_batch_by_stage on program.payout_batch (organization_id, program_id, stage, id) where deleted_at is null and stage <> 'ready';
create index payout_batch_generating on program.payout_batch (created_at) where stage = 'generating' and deleted_at is null;
create unique index payout_batch_one_a_month on program.payout_batch (organization_id, program_id, scheduled_for)
  where scheduled_for is not null;
call core.protect_tenant_table('program.payout_batch');

create table program.payout_batch_range (
  organization_id text collate "C" not null,
  batch_id text collate "C" not null,
  number smallint not null constraint payout_batch_range_number_known check (number in (0, 1, 2)),
  last_partner_id text collate "C" not null,
  up_to_partner_id text collate "C" not null,
  is_done boolean not null default false,
  partners_looked_at bigint not null default 0,
  payouts bigint not null default 0,
  amounts jsonb not null default '{}'::jsonb,
  not_eligible jsonb not null default '{}'::jsonb,
  primary key (organization_id, batch_id, number),
  foreign key (organization_id, batch_id) references program.payout_batch on delete cascade
);
comment on table program.payout_batch_range is
  'The ranges of partners in which a batch is generated, and what they came to so far. They are added to the batch, and deleted, when all are done.';
comment on column program.payout_batch_range.number is '0: all partners. 1 and 2: the halves.';
comment on column program.payout_batch_range.last_partner_id is 'Generation goes on after this partner.';
comment on column program.payout_batch_range.up_to_partner_id is 'The last partner of the range; beyond all ids where it has no end.';
call core.protect_tenant_table('program.payout_batch_range');

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
  due_emitted_at timestamptz(3),
  partner_notified_of timestamptz(3),
  submitted_at timestamptz(3),
  paid_at timestamptz(3),
  failed_at timestamptz(3),
  attempt integer not null default 0,
  error_code text,
  error_message text,
  commission_count integer not null,
  statement_number text,
  held_reason text,
  held_until timestamptz(3),
  in_progress text collate "C" constraint payout_in_progress_known check (in_progress in ('mark_paid', 'mark_returned', 'delete')),
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  constraint payout_deleted_is_unpaid check (deleted_at is null or status in ('pending', 'failed')),
  constraint payout_failed_has_time check ((status = 'failed') = (failed_at is not null)),
  constraint payout_paid_has_time check ((status = 'paid') = (paid_at is not null)),
  foreign key (organization_id, batch_id) references program.payout_batch,
  foreign key (organization_id, partner_id) references program.partner,
  foreign key (organization_id, program_id) references program.program on delete cascade
) with (fillfactor = 80);
comment on table program.payout is 'What a partner is paid at once in one currency. A deleted payout is kept for the books.';
comment on column program.payout.livemode is 'False: sent by a rail in test mode. It never counts as paid, and frees its commissions at its end.';
comment on column program.payout.due_emitted_at is 'When payout.due was emitted.';
comment on column program.payout.partner_notified_of is 'The paid_at that the partner was emailed about.';
comment on column program.payout.attempt is 'How often it was sent: the number of its last attempt.';
comment on column program.payout.statement_number is 'The number of its statement, from when it was first paid: "2026-00042".';
comment on column program.payout.held_reason is 'Why it was not sent: emitted once. Null: nothing keeps it.';
comment on column program.payout.held_until is 'It is not sent automatically before.';
comment on column program.payout.changed_in is 'The transaction that wrote the row last.';
create index payout_by_batch on program.payout (organization_id, batch_id, id) where deleted_at is null;
create index payout_by_change on program.payout (organization_id, changed_in);
create index payout_by_created_at on program.payout (organization_id, program_id, created_at)
  where deleted_at is null;
create index payout_by_partner on program.payout (organization_id, partner_id, id) where deleted_at is null;
create index payout_by_program on program.payout (organization_id, program_id, id) include (created_at, status) where deleted_at is null;
create index payout_by_status on program.payout (organization_id, program_id, status, id) where deleted_at is null;
create index payout_in_progress on program.payout (id) where in_progress is not null;
create index payout_not_numbered on program.payout (organization_id, program_id)
  where status = 'paid' and livemode and statement_number is null;
create index payout_not_sent on program.payout (organization_id, batch_id, held_reason)
  where held_reason is not null and status in ('pending', 'failed') and deleted_at is null;
create index payout_due_not_emitted on program.payout (due_at) where status = 'pending' and due_emitted_at is null and deleted_at is null;
create index payout_open_by_batch on program.payout (organization_id, batch_id, id) include (partner_id)
  where status in ('pending', 'processing') and deleted_at is null;
create unique index payout_statement_number on program.payout (organization_id, program_id, statement_number)
  where statement_number is not null;
create index payout_to_send on program.payout (due_at) where status = 'pending' and deleted_at is null;
call core.protect_tenant_table('program.payout');

create table program.payout_commission (
  organization_id text collate "C" not null,
  payout_id text collate "C" not null,
  commission_id text collate "C" not null,
  sale_amount_minor bigint,
  primary key (organization_id, payout_id, commission_id)
);
comment on table program.payout_commission is
  'program.commission.payout_id by payout, written by triggers of that table: in place of an index of its column.';
comment on column program.payout_commission.sale_amount_minor is
  'What the sale came to when the payout was sent, where it was corrected since. Null: what it comes to now.';
call core.protect_tenant_table('program.payout_commission');

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
  state jsonb not null default '{}'::jsonb,
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
  owner_notified_at timestamptz(3),
  began_at timestamptz(3) not null,
  ended_at timestamptz(3),
  last_sent_at timestamptz(3),
  claimed_until timestamptz(3),
  settled boolean not null default false,
  excess_commission_id text collate "C",
  bookings jsonb,
  primary key (organization_id, id),
  constraint payout_attempt_number_unique unique (organization_id, payout_id, number),
  foreign key (organization_id, payout_id) references program.payout on delete cascade
);
comment on table program.payout_attempt is 'A payout as it was sent to its rail: the request stays as it is, so that a repetition sends the same.';
comment on column program.payout_attempt.bookings is
  'What the bank has booked of it: the references of debits and returns, and the clawbacks of what it executed more than twice. Null: nothing is known.';
comment on column program.payout_attempt.id is 'The idempotency key: <payout id>-<number>.';
comment on column program.payout_attempt.request is 'AES-256-GCM: the transfer as it was sent, with its destination.';
comment on column program.payout_attempt.state is 'What the rail keeps between its calls, such as the id of a quote.';
comment on column program.payout_attempt.next_poll_at is 'When the rail is asked again. Null: never.';
comment on column program.payout_attempt.last_sent_at is 'When the rail was last asked to pay. Null: never, so nothing can have arrived.';
comment on column program.payout_attempt.claimed_until is 'A worker calls the rail until then, unless it died.';
comment on column program.payout_attempt.settled is 'The payout was settled by this attempt.';
comment on column program.payout_attempt.excess_commission_id is
  'The clawback of what this attempt paid beyond the payout: all of it, or where it settled the payout, what the bank executed a second time.';
create index payout_attempt_by_credentials on program.payout_attempt (organization_id, program_id, rail, credentials_version)
  where status in ('prepared', 'in_doubt', 'processing') or next_poll_at is not null;
create index payout_attempt_by_day on program.payout_attempt (organization_id, program_id, currency, began_at)
  include (amount_minor, status);
create index payout_attempt_by_file on program.payout_attempt (organization_id, file_id, id) where file_id is not null;
create index payout_attempt_by_reference on program.payout_attempt (organization_id, program_id, reference) where reference is not null;
create index payout_attempt_of_excess on program.payout_attempt (organization_id, program_id)
  where excess_commission_id is not null;
create index payout_attempt_to_poll on program.payout_attempt (next_poll_at) where next_poll_at is not null;
call core.protect_tenant_table('program.payout_attempt');

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
call core.protect_tenant_table('program.payout_file');

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
call core.protect_tenant_table('program.payout_report');

create table program.payout_limit_notice (
  organization_id text collate "C" not null,
  program_id text collate "C" not null,
  day date not null,
  currency text not null,
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, program_id, day, currency),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.payout_limit_notice is 'The days on which a program reached its payout limit, and its owner was emailed.';
call core.protect_tenant_table('program.payout_limit_notice');

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

create table program.processor (
  organization_id text collate "C" not null,
  program_id text collate "C" not null,
  id text collate "C" not null,
  processor text not null constraint processor_known check (processor in ('stripe', 'paddle', 'chargebee')),
  mode text not null constraint processor_mode_known check (mode in ('test', 'live')),
  status text not null constraint processor_status_known check (status in ('connected', 'disconnected')),
  disconnected_reason text,
  credentials bytea not null,
  account text not null,
  hint text not null,
  warnings text[] not null,
  endpoint_id text,
  reconciled_to timestamptz(3) not null,
  backfill jsonb,
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, id),
  constraint processor_disconnected_has_reason check ((status = 'disconnected') = (disconnected_reason is not null)),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.processor is 'The billing processors whose charges become sales: their credentials, a row for each time that they were set.';
comment on column program.processor.credentials is 'AES-256-GCM; never shown again.';
comment on column program.processor.hint is 'The last four characters of the key.';
comment on column program.processor.endpoint_id is 'The webhook endpoint that was created at the processor. Null: a person created it.';
comment on column program.processor.reconciled_to is 'Events up to then were compared with those of the processor.';
comment on column program.processor.backfill is 'How far the history of the processor was read: {"since": …, "dry_run": …, "status": …, "from": …, "read": …, "found": …}. Null: it never was.';
-- For webhooks, which name a program alone. No view shows the hint, so that none leads here to the rows of all organizations.
create index processor_by_program on program.processor (program_id, processor) where hint <> '';
create unique index processor_current on program.processor (organization_id, program_id, processor) where deleted_at is null;
call core.protect_tenant_table('program.processor');

create table program.sale_claim (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C" not null,
  external_charge_id text,
  email text,
  email_key text generated always as (lower(email)) stored,
  coupon_code text,
  occurred_at timestamptz(3),
  note text,
  finding text not null constraint sale_claim_finding_known
    check (finding in ('credited', 'found_with_click', 'found_without_click', 'received', 'not_found')),
  sale_id text collate "C",
  processor_event_id text collate "C",
  status text not null constraint sale_claim_status_known check (status in ('open', 'accepted', 'rejected')),
  resolution_note text,
  resolved_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  constraint sale_claim_resolved_has_time check ((status = 'open') = (resolved_at is null)),
  foreign key (organization_id, partner_id) references program.partner,
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, sale_id) references program.sale
);
comment on table program.sale_claim is 'A sale that a partner misses, what was found of it, and the merchant''s decision.';
comment on column program.sale_claim.changed_in is 'The transaction that wrote the row last.';
create index sale_claim_by_change on program.sale_claim (organization_id, changed_in);
create index sale_claim_by_charge on program.sale_claim (organization_id, program_id, external_charge_id) where external_charge_id is not null;
create index sale_claim_by_email on program.sale_claim (organization_id, program_id, email_key) where email_key is not null;
create index sale_claim_by_partner on program.sale_claim (organization_id, partner_id, id);
create index sale_claim_by_program on program.sale_claim (organization_id, program_id, id) include (created_at);
create index sale_claim_by_sale on program.sale_claim (organization_id, sale_id) where sale_id is not null;
create index sale_claim_by_status on program.sale_claim (organization_id, program_id, status, id);
call core.protect_tenant_table('program.sale_claim');

create table program.processor_event (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  processor text not null constraint processor_event_processor_known check (processor in ('stripe', 'paddle', 'chargebee')),
  external_event_id text not null,
  type text not null,
  external_object_id text,
  external_customer_id text,
  livemode boolean not null,
  occurred_at timestamptz(3) not null,
  rank smallint not null,
  queue text not null,
  run_id text not null,
  status text not null constraint processor_event_status_known
    check (status in ('pending', 'waiting', 'done', 'ignored', 'failed', 'unresolved')),
  waiting_for text,
  reason text,
  message text,
  result_id text,
  body text,
  worked_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  constraint processor_event_waits_for_something check (status not in ('waiting', 'unresolved') or waiting_for is not null),
  constraint processor_event_worked_has_time check ((status = 'pending') = (worked_at is null)),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.processor_event is 'The inbox of billing processors: an event that a processor signed, and what became of it.';
comment on column program.processor_event.rank is 'The order of events of one second.';
comment on column program.processor_event.queue is 'Events of one queue are worked on one after the other: the id of the customer at the processor, or else of the payment.';
comment on column program.processor_event.run_id is 'The request id of whatever it causes.';
comment on column program.processor_event.waiting_for is 'The id at the processor that must be known first.';
comment on column program.processor_event.result_id is 'The sale, refund, dispute, customer or coupon that it created or changed.';
comment on column program.processor_event.body is 'As it was signed. Null: erased with its customer.';
comment on column program.processor_event.changed_in is 'The transaction that wrote the row last.';
create index processor_event_by_change on program.processor_event (organization_id, changed_in);
create index processor_event_by_customer on program.processor_event (organization_id, program_id, external_customer_id);
create index processor_event_by_object on program.processor_event (organization_id, program_id, external_object_id);
create index processor_event_by_program on program.processor_event (organization_id, program_id, id);
create index processor_event_by_queue on program.processor_event (organization_id, program_id, queue);
create index processor_event_by_status on program.processor_event (organization_id, program_id, status, id) where status <> 'done';
create index processor_event_overdue on program.processor_event (worked_at) where status = 'waiting';
create index processor_event_by_time on program.processor_event (created_at);
create index processor_event_pending on program.processor_event (organization_id, program_id, queue, occurred_at, rank) where status = 'pending';
create index processor_event_troubled on program.processor_event (created_at) where status in ('failed', 'unresolved');
create index processor_event_unattributed on program.processor_event (organization_id, program_id, occurred_at)
  where status = 'ignored' and reason = 'unattributed';
create index processor_event_waiting on program.processor_event (organization_id, program_id, waiting_for) where waiting_for is not null;
create unique index processor_event_once on program.processor_event (organization_id, program_id, processor, external_event_id);
call core.protect_tenant_table('program.processor_event');

create table program.processor_object (
  organization_id text collate "C" not null,
  program_id text collate "C" not null,
  processor text not null constraint processor_object_processor_known check (processor in ('stripe', 'paddle', 'chargebee')),
  external_id text not null,
  object_id text collate "C",
  event_id text collate "C",
  state text,
  as_of timestamptz(3) not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, program_id, processor, external_id),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.processor_object is 'The ids of a billing processor that are known, and what they are here.';
comment on column program.processor_object.object_id is 'The sale, refund, dispute or customer. Null: known, and nothing here, such as a charge without a partner.';
comment on column program.processor_object.event_id is 'An event that told it. It is worked on again, with others of its customer, when a request records what was nobody''s.';
comment on column program.processor_object.state is 'The last state of it at the processor that was taken over.';
comment on column program.processor_object.as_of is 'The time of the event that told the state: an earlier one changes nothing.';
create index processor_object_by_object on program.processor_object (organization_id, object_id);
call core.protect_tenant_table('program.processor_object');

create table program.processor_total (
  organization_id text collate "C" not null,
  program_id text collate "C" not null,
  processor text not null constraint processor_total_processor_known check (processor in ('stripe', 'paddle', 'chargebee')),
  day date not null,
  kind text not null constraint processor_total_kind_known check (kind in ('charge', 'refund', 'dispute')),
  currency text not null,
  theirs integer not null,
  theirs_minor bigint not null,
  ours_minor bigint not null,
  uncredited_minor bigint not null,
  difference_minor bigint not null generated always as (theirs_minor - ours_minor - uncredited_minor) stored,
  examples text[] not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, program_id, processor, day, kind, currency),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.processor_total is 'What a billing processor says that it moved on a day, beside what is recorded of it here.';
comment on column program.processor_total.day is 'UTC.';
comment on column program.processor_total.theirs is 'The number of charges, refunds or disputes at the processor.';
comment on column program.processor_total.ours_minor is 'What is recorded here of the same charges, refunds or disputes.';
comment on column program.processor_total.uncredited_minor is 'What is known here and recorded nowhere: nobody is credited with the charge, or its sale was deleted.';
comment on column program.processor_total.examples is 'Ids at the processor of some that differ.';
create index processor_total_differing on program.processor_total (day) where difference_minor <> 0;
call core.protect_tenant_table('program.processor_total');
