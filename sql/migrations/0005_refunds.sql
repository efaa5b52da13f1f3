create table program.refund (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  sale_id text collate "C" not null,
  external_refund_id text,
  amount_minor bigint not null constraint refund_amount_positive check (amount_minor > 0),
  reason text,
  created_at timestamptz(3) not null,
  primary key (organization_id, id),
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, sale_id) references program.sale
);
comment on table program.refund is 'Money given back of a sale; the sale''s refunded_minor is the sum of these.';
create unique index refund_external_id_unique on program.refund (organization_id, program_id, external_refund_id);
create index refund_by_sale on program.refund (organization_id, sale_id);

call core.protect_tenant_table('program.refund');
