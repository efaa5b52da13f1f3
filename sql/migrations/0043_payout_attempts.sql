-- What sending needs to know of an attempt, and of a payout that cannot be sent.
alter table program.payout_attempt
  add column last_sent_at timestamptz(3),
  add column claimed_until timestamptz(3),
  add column settled boolean not null default false,
  add column excess_commission_id text collate "C";
comment on column program.payout_attempt.last_sent_at is 'When the rail was last asked to pay. Null: never, so nothing can have arrived.';
comment on column program.payout_attempt.claimed_until is 'A worker calls the rail until then, unless it died.';
comment on column program.payout_attempt.settled is 'The payout was settled by this attempt.';
comment on column program.payout_attempt.excess_commission_id is 'The clawback of what this attempt paid beyond the payout.';
create index payout_attempt_by_day on program.payout_attempt (organization_id, program_id, currency, began_at) include (amount_minor, status);

alter table program.payout
  add column held_reason text,
  add column held_until timestamptz(3);
comment on column program.payout.held_reason is 'Why it was not sent: told once. Null: nothing keeps it.';
comment on column program.payout.held_until is 'It is not sent automatically before.';
create index payout_to_send on program.payout (due_at) where status = 'pending' and deleted_at is null;

drop table program.payout_sent;
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
