-- Schema data: views for those who query Postgres directly. Its roles are made by 'rail migrate' before the first migration runs.

create schema data;
comment on schema data is 'Documented views of each organization''s own data, for data teams: the only schema that their logins reach.';

create table core.data_login (
  role_name text collate "C" primary key,
  organization_id text collate "C" not null references core.organization on delete cascade,
  name text not null,
  sees_personal boolean not null default false,
  statement_timeout_ms integer not null constraint data_login_statement_timeout_positive check (statement_timeout_ms > 0),
  connection_limit integer not null constraint data_login_connection_limit_positive check (connection_limit > 0),
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  created_at timestamptz(3) not null default now()
);
comment on table core.data_login is
  'Logins of data teams: which organization''s rows a Postgres role sees through the views of schema data. Written by ''rail data user'' alone.';
comment on column core.data_login.role_name is 'The Postgres role. No setting of a session stands in for it.';
comment on column core.data_login.sees_personal is 'Whether emails, names and other personal columns are shown to it.';
comment on column core.data_login.statement_timeout_ms is 'How long a statement of it may run: a role can undo its own setting, so a worker ends what runs longer.';
create index data_login_by_organization on core.data_login (organization_id);
call core.protect_tenant_table('core.data_login');
revoke all on core.data_login from rail_api;

-- Rows of a time are found without a look at the whole table: rows lie in the order in which they were made, so that a small index will do.
create index click_by_time on program.click using brin (created_at) with (autosummarize = on);
create index event_by_time on webhooks.event using brin (created_at) with (autosummarize = on);
create index delivery_by_time on webhooks.delivery using brin (created_at) with (autosummarize = on);
create index attempt_by_time on webhooks.attempt using brin (at) with (autosummarize = on);
create index referral_by_time on program.referral using brin (created_at) with (autosummarize = on);
create index customer_by_time on program.customer using brin (created_at) with (autosummarize = on);
create index sale_by_time on program.sale using brin (created_at, occurred_at) with (autosummarize = on);
create index commission_by_time on program.commission using brin (created_at) with (autosummarize = on);
create index refund_by_time on program.refund using brin (created_at) with (autosummarize = on);

comment on table core.api_key is 'API keys of organizations (key_): what each may do, and how often. Only a hash of a key is stored.';
comment on table migration.applied is 'The files of sql/migrations and sql/live that ran on this database, with the hash of their text.';
comment on table program.program is 'A partner program of an organization: its currency, how long clicks count, when commissions mature, how partners are paid.';
comment on table program.partner_group is 'A group of partners in a program, which rules can name. Each program has one default group.';
comment on table program.tag is 'A label of partners in a program, which rules can name.';
comment on table program.partner_tag is 'Which partners have which tags.';
comment on table program.partner is 'A person or company that refers customers to a program and earns commissions.';
comment on table program.link is 'A partner''s tracking link. A deleted link attributes no clicks.';
comment on table program.coupon is 'A coupon that credits its partner with the sales it was used in.';
comment on table program.referral is 'A visitor whom a partner referred, from the first visit to the first payment.';
comment on table program.customer is 'A customer who is attributed to a partner, from sign-up on.';
comment on table program.sale is 'A charge, and the partner who is credited with it.';
comment on table program.commission is 'What a partner earned by a sale or as a bonus, or has to return (a clawback, with a negative amount).';
comment on table program.payout_method is 'How a partner is paid. The account is encrypted.';
comment on table webhooks.endpoint is 'A URL that receives the events of a program, or of one partner (a postback).';
comment on table webhooks.pending_event is 'Events whose deliveries are not written yet. Rows live for milliseconds.';
