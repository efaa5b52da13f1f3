alter table program.referral add column deleted_reason text;
comment on column program.referral.deleted_reason is 'Why it ended, as referral.deleted told it.';
