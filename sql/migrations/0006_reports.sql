-- Sums for lists, statistics and reports.

-- A row of program.report_fact: the functions that say what counts give it, and its notes have it behind their sign.
create type program.fact as (
  organization_id text collate "C",
  program_id text collate "C",
  noun text,
  id text collate "C",
  sale_id text collate "C",
  at timestamptz(3),
  partner_id text collate "C",
  link_id text collate "C",
  coupon_id text collate "C",
  country text collate "C",
  landing_page text collate "C",
  product_id text collate "C",
  customer_id text collate "C",
  currency text collate "C",
  clicks integer,
  referrals integer,
  leads integer,
  customers integer,
  sales integer,
  revenue_minor bigint,
  refunds_minor bigint,
  commissions_minor bigint,
  clawbacks_minor bigint,
  paid_minor bigint,
  inserted_in xid8
);

-- The amount that a fold adds to the sums of a key: see program.fold_reports().
create type program.report_sum as (
  organization_id text collate "C",
  program_id text collate "C",
  dimension text collate "C",
  starts_in integer,
  key text collate "C",
  currency text collate "C",
  clicks numeric,
  referrals numeric,
  leads numeric,
  customers numeric,
  sales numeric,
  revenue_minor numeric,
  refunds_minor numeric,
  commissions_minor numeric,
  clawbacks_minor numeric,
  paid_minor numeric,
  key_id bigint
);

create table program.fold (
  organization_id text collate "C" not null references core.organization on delete cascade,
  sums text not null constraint fold_sums_known check (sums in ('tallies', 'reports', 'mails')),
  seen pg_snapshot not null default '1:1:',
  primary key (organization_id, sums)
);
comment on table program.fold is 'Of which state of the database the sums of an organization are: a reader adds what that snapshot does not see.';
comment on column program.fold.sums is 'mails: new customers whose partners have been told are those that the snapshot sees.';
comment on column program.fold.seen is 'Rows that are inserted by transactions which it sees are in the sums; others are not.';
call core.protect_tenant_table('program.fold');

create table program.referral_mail (
  organization_id text collate "C" not null,
  partner_id text collate "C" not null,
  day date not null,
  told integer not null constraint referral_mail_told_not_negative check (told >= 0),
  waiting integer not null constraint referral_mail_waiting_not_negative check (waiting >= 0),
  primary key (organization_id, partner_id),
  foreign key (organization_id, partner_id) references program.partner on delete cascade
);
comment on table program.referral_mail is 'The last day (UTC) on which a partner had new customers, and how many of them the partner was told of by mail.';
comment on column program.referral_mail.told is 'Of the customers of the day: told on it. At most ten.';
comment on column program.referral_mail.waiting is 'Of the customers of the day: to be told in one mail, once it is over.';
create index referral_mail_waiting on program.referral_mail (day) where waiting > 0;
call core.protect_tenant_table('program.referral_mail');

create table program.tally (
  organization_id text collate "C" not null,
  subject_id text collate "C" not null,
  noun text not null,
  kind text not null,
  rows bigint not null,
  amount_minor numeric not null,
  primary key (organization_id, subject_id, noun, kind)
) with (fillfactor = 50);
comment on table program.tally is 'How many rows of a noun belong to a subject and what they come to, as of the snapshot in program.fold.';
comment on column program.tally.kind is 'What splits them: a partner''s status, the currency of money, whether it is paid or does not count; else nothing.';
call core.protect_tenant_table('program.tally');

create table program.tally_note (
  organization_id text collate "C" not null,
  subject_id text collate "C" not null,
  noun text not null,
  kind text not null,
  rows bigint not null,
  amount_minor bigint not null,
  inserted_in xid8 not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
comment on table program.tally_note is
  'What an update or a delete changed of what counts: it counts where the row itself is in the sums. Notes live for a minute.';
comment on column program.tally_note.inserted_in is 'The transaction that inserted the row.';
create index tally_note_by_organization on program.tally_note (organization_id);
call core.protect_tenant_table('program.tally_note');

create table program.report_key (
  id bigint generated always as identity primary key,
  organization_id text collate "C" not null,
  program_id text collate "C" not null,
  dimension text collate "C" not null,
  key text collate "C" not null,
  constraint report_key_unique unique (organization_id, program_id, dimension, key)
);
comment on table program.report_key is 'The keys of report_total.';
comment on column program.report_key.key is 'The value of the dimension; empty: none.';
call core.protect_tenant_table('program.report_key');

create table program.report_slice (
  id integer generated always as identity primary key,
  organization_id text collate "C" not null,
  program_id text collate "C" not null,
  dimension text collate "C" not null,
  minutes integer not null,
  constraint report_slice_unique unique (organization_id, program_id, dimension, minutes)
);
comment on table program.report_slice is 'What the rows of report_total are sums of: a program''s facts by a dimension over spans of a length.';
comment on column program.report_slice.dimension is 'By which column of report_fact it is summed; empty: all together.';
comment on column program.report_slice.minutes is 'How long the spans are. Spans of several lengths hold the same facts.';
call core.protect_tenant_table('program.report_slice');

create table program.report_total (
  slice_id integer not null,
  starts_in integer not null,
  key_id bigint not null,
  organization_id text collate "C" not null,
  currency text collate "C" not null,
  clicks bigint,
  referrals bigint,
  leads bigint,
  customers bigint,
  sales bigint,
  revenue_minor numeric,
  refunds_minor numeric,
  commissions_minor numeric,
  clawbacks_minor numeric,
  paid_minor numeric,
  primary key (slice_id, starts_in, key_id, currency)
) with (fillfactor = 80);
comment on table program.report_total is
  'Sums of report_fact by a dimension''s key over a span of time, as of the snapshot in program.fold. Null is 0.';
comment on column program.report_total.starts_in is 'When the span begins: in minutes since 1970.';
comment on column program.report_total.currency is 'The currency of the money; empty for what has none.';
create index report_total_by_key on program.report_total (slice_id, key_id, starts_in);
call core.protect_tenant_table('program.report_total');
-- No condition and no order asks for the sums: statistics of them would serve nothing.
alter table program.report_total
  alter column clicks set statistics 0,
  alter column referrals set statistics 0,
  alter column leads set statistics 0,
  alter column customers set statistics 0,
  alter column sales set statistics 0,
  alter column revenue_minor set statistics 0,
  alter column refunds_minor set statistics 0,
  alter column commissions_minor set statistics 0,
  alter column clawbacks_minor set statistics 0,
  alter column paid_minor set statistics 0;

create table program.report_note (
  sign smallint not null,
  organization_id text collate "C" not null,
  program_id text collate "C" not null,
  noun text not null,
  id text collate "C" not null,
  sale_id text collate "C",
  at timestamptz(3) not null,
  partner_id text collate "C" not null,
  link_id text collate "C",
  coupon_id text collate "C",
  country text collate "C",
  landing_page text collate "C",
  product_id text collate "C",
  customer_id text collate "C",
  currency text collate "C" not null,
  clicks integer,
  referrals integer,
  leads integer,
  customers integer,
  sales integer,
  revenue_minor bigint,
  refunds_minor bigint,
  commissions_minor bigint,
  clawbacks_minor bigint,
  paid_minor bigint,
  inserted_in xid8 not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
comment on table program.report_note is
  'What updates and deletes changed of facts: those before (sign -1) and after (sign 1). Each counts where its row is in the sums. Notes live for a minute.';
comment on column program.report_note.inserted_in is 'The transaction that inserted the row.';
create index report_note_by_organization on program.report_note (organization_id);
call core.protect_tenant_table('program.report_note');

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
