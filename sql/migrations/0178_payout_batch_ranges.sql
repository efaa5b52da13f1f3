-- A batch is generated in two ranges of partners at the same time, each with a cursor and sums of its own.
create table program.payout_batch_range (
  organization_id text collate "C" not null,
  batch_id text collate "C" not null,
  number smallint not null,
  last_partner_id text collate "C" not null,
  up_to_partner_id text collate "C" not null,
  is_done boolean not null default false,
  partners_looked_at bigint not null default 0,
  payouts bigint not null default 0,
  amounts jsonb not null default '{}',
  not_eligible jsonb not null default '{}',
  primary key (organization_id, batch_id, number),
  constraint payout_batch_range_number_known check (number in (0, 1, 2)),
  foreign key (organization_id, batch_id) references program.payout_batch on delete cascade
);
comment on table program.payout_batch_range is
  'The ranges of partners in which a batch is generated, and what they came to so far. They are added to the batch, and deleted, when all are done.';
comment on column program.payout_batch_range.number is '0: all partners. 1 and 2: the halves.';
comment on column program.payout_batch_range.last_partner_id is 'Generation goes on after this partner.';
comment on column program.payout_batch_range.up_to_partner_id is 'The last partner of the range; beyond all ids where it has no end.';
call core.protect_tenant_table('program.payout_batch_range');
