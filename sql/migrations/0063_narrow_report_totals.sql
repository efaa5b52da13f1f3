-- The sums of reports by numbers: what a sum is of, and its key, are written once, and not in each of their rows. The task
-- program/rebuild_reports counts them anew; until then reports read the facts.

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

call core.protect_tenant_table('program.report_slice');
call core.protect_tenant_table('program.report_key');

drop table program.report_total;
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
  'Sums of report_fact by a dimension''s key over a span of time, together with the notes in report_change. Null is 0.';
comment on column program.report_total.starts_in is 'When the span begins: in minutes since 1970.';
comment on column program.report_total.currency is 'The currency of the money; empty for what has none.';

call core.protect_tenant_table('program.report_total');

update program.program set reports_ready = false;
