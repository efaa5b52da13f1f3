-- What the credentials of a rail are recognised by, and what a provider's webhook is read by.
alter table program.rail add column hint text not null default '';
comment on column program.rail.hint is 'The last four characters of what identifies the account or the key.';
create index rail_by_program on program.rail (program_id, rail);
create index payout_attempt_by_credentials on program.payout_attempt (organization_id, program_id, rail, credentials_version)
  where status in ('prepared', 'in_doubt', 'processing') or next_poll_at is not null;
