-- Sending: one email at a time from an inbox, what each one counts towards, and what became of those that may have been sent.

alter table recruitment.inbox add column rests_until timestamptz(3);
comment on column recruitment.inbox.rests_until is 'It has nothing to send, or may send no more for now: it is looked at again then. A person''s emails go all the same.';

alter table recruitment.message
  add column due_at timestamptz(3),
  add column recipient bytea,
  add column has_footer boolean not null default true,
  add column campaign_counted_on date,
  add column organization_counted_on date,
  add column look_up_at timestamptz(3),
  add column look_ups integer not null default 0;
comment on column recruitment.message.due_at is 'Of a planned email outside of campaigns: the earliest time of its next attempt. Null: at once.';
comment on column recruitment.message.recipient is 'The address of a team member that a test goes to, sealed. Null: the address of email_address_id.';
comment on column recruitment.message.has_footer is 'Whether it ends with the unsubscribe link: all do but a person''s answers.';
comment on column recruitment.message.campaign_counted_on is 'The day of the campaign that it is counted on (campaign_day of a first step, company_day).';
comment on column recruitment.message.organization_counted_on is 'The day in UTC that it is counted on (organization_day). Null: the plan had no limit.';
comment on column recruitment.message.look_up_at is 'Of an email that may have been sent: when it is looked for in the mailbox again.';

-- Of each campaign that sends, what is due first in an inbox: follow-ups (active) and first emails (waiting).
drop index recruitment.sequence_due;
create index sequence_lane on recruitment.sequence (organization_id, inbox_id, campaign_id, state, due_at) where open and due_at is not null;
create index sequence_to_complete on recruitment.sequence (organization_id, campaign_id, next_step, due_at) where state = 'active' and due_at is not null;

create unique index message_one_in_lane on recruitment.message (organization_id, inbox_id) where state = 'sending';
create index message_to_copy on recruitment.message (organization_id, inbox_id, sent_at)
  where direction = 'outbound' and sent_at is not null and copied_at is null;
create index message_to_look_up on recruitment.message (look_up_at) where look_up_at is not null;
create index message_refused on recruitment.message (organization_id, campaign_id, bounced_at) where state = 'failed' and bounced_at is not null;
