-- Outreach: campaigns, a sequence of emails for each prospect, the messages that went out and came in, and what limits them.

alter table recruitment.inbox
  add column next_slot_at timestamptz(3),
  add column waits_until timestamptz(3),
  add column wait_s integer,
  add column auth_failures integer not null default 0,
  add column unreachable_since timestamptz(3),
  add column imap_last_seen_at timestamptz(3);
comment on column recruitment.inbox.next_slot_at is 'The earliest time of its next email: the last one and the gap. Null: none was sent.';
comment on column recruitment.inbox.waits_until is 'Its provider refused more for now (quota): nothing is sent before.';
comment on column recruitment.inbox.wait_s is 'How long it waited the last time: the next wait is twice as long. Null: it does not wait.';
comment on column recruitment.inbox.auth_failures is 'Logins that were refused since the last that was not.';
comment on column recruitment.inbox.unreachable_since is 'Since when a server of it cannot be reached. Null: it can.';
comment on column recruitment.inbox.imap_last_seen_at is 'When it was last read.';

create table recruitment.inbox_day (
  organization_id text collate "C" not null references core.organization on delete cascade,
  inbox_id text collate "C" not null,
  day date not null,
  sent integer not null constraint inbox_day_sent_not_negative check (sent >= 0),
  primary key (organization_id, inbox_id, day),
  constraint inbox_day_inbox foreign key (organization_id, inbox_id) references recruitment.inbox (organization_id, id)
);
comment on table recruitment.inbox_day is 'What an inbox sent on a day of its zone: what was accepted, what may have been (unknown), and what is being sent. People''s own emails included.';

create table recruitment.inbox_folder (
  organization_id text collate "C" not null references core.organization on delete cascade,
  inbox_id text collate "C" not null,
  folder text not null,
  uid_validity bigint not null,
  last_uid bigint not null,
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, inbox_id, folder),
  constraint inbox_folder_inbox foreign key (organization_id, inbox_id) references recruitment.inbox (organization_id, id)
);
comment on table recruitment.inbox_folder is 'Up to where a folder of an inbox was read: UIDVALIDITY and UID of RFC 9051.';

create table recruitment.campaign (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  brand_id text collate "C" not null,
  name text not null,
  inbox_ids text[] not null default '{}',
  steps jsonb not null default '[]',
  schedule jsonb not null,
  daily_new_limit integer constraint campaign_daily_new_limit_positive check (daily_new_limit > 0),
  max_per_domain_day integer not null constraint campaign_max_per_domain_day_positive check (max_per_domain_day > 0),
  bounce_pause_bps integer not null constraint campaign_bounce_pause_bps_in_range check (bounce_pause_bps between 0 and 10000),
  reply_wait_days integer not null constraint campaign_reply_wait_days_not_negative check (reply_wait_days >= 0),
  allow_risky boolean not null,
  stop_for_company boolean not null,
  state text not null default 'draft' constraint campaign_state_known
    check (state in ('draft', 'scheduled', 'sending', 'paused', 'stopped', 'finished')),
  pause_causes text[] not null default '{}' constraint campaign_pause_causes_known
    check (pause_causes <@ array['user', 'guard', 'plan', 'inbox']),
  pause_reason text constraint campaign_pause_reason_known
    check (pause_reason in ('bounce_rate', 'spam_complaint', 'not_entitled', 'no_inbox')),
  counted_since timestamptz(3),
  start_at timestamptz(3),
  launch_error text,
  launched_at timestamptz(3),
  paused_at timestamptz(3),
  stopped_at timestamptz(3),
  finished_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint campaign_brand foreign key (organization_id, brand_id) references recruitment.brand (organization_id, id),
  constraint campaign_paused_has_cause check ((state = 'paused') = (pause_causes <> '{}')),
  constraint campaign_scheduled_has_start check (state <> 'scheduled' or start_at is not null)
);
comment on table recruitment.campaign is 'A campaign: the emails that prospects of a brand are sent, from which inboxes, and when.';
comment on column recruitment.campaign.inbox_ids is 'The inboxes that it sends from.';
comment on column recruitment.campaign.steps is 'A list of {id, delay_days, weight, subject, body_text, body_html, variants: [{weight, subject, body_text, body_html}]}.';
comment on column recruitment.campaign.schedule is '{timezone, days, from, to}: when emails may be sent. The zone `recipient` is the one of each prospect.';
comment on column recruitment.campaign.pause_causes is 'Why it is paused: user, guard, plan, inbox. It sends again once none is left.';
comment on column recruitment.campaign.pause_reason is 'The reason of the pause, where the service paused it.';
comment on column recruitment.campaign.counted_since is 'Since when sent and bounced emails are counted, for the limit of bounces: the launch, or the last pause.';
create index campaign_by_brand on recruitment.campaign (organization_id, brand_id, id);
create index campaign_by_inbox on recruitment.campaign using gin (inbox_ids);
create index campaign_to_start on recruitment.campaign (start_at) where state = 'scheduled';
create index campaign_sending on recruitment.campaign (organization_id, id) where state = 'sending';

create table recruitment.sequence (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  campaign_id text collate "C" not null,
  brand_id text collate "C" not null,
  prospect_id text collate "C",
  inbox_id text collate "C",
  email_address_id text collate "C",
  address_hmac bytea,
  domain_hmac bytea,
  company_hmac bytea,
  thread_id text collate "C",
  state text not null default 'waiting' constraint sequence_state_known
    check (state in ('waiting', 'active', 'completed', 'replied', 'bounced', 'unsubscribed', 'stopped', 'failed')),
  open boolean not null generated always as (state in ('waiting', 'active')) stored,
  next_step integer not null default 0 constraint sequence_next_step_not_negative check (next_step >= 0),
  due_at timestamptz(3),
  paused_by_user boolean not null default false,
  paused_until timestamptz(3),
  failed_reason text constraint sequence_failed_reason_known check (failed_reason in (
    'no_address', 'do_not_contact', 'suppressed', 'invalid_address', 'risky_address', 'in_another_campaign', 'inbox_removed', 'template_error',
    'recipient_refused', 'sender_refused', 'content_refused', 'too_large', 'quota', 'timeout'
  )),
  last_sent_at timestamptz(3),
  ended_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint sequence_prospect_unique unique (organization_id, campaign_id, prospect_id),
  constraint sequence_campaign foreign key (organization_id, campaign_id) references recruitment.campaign (organization_id, id) on delete cascade,
  constraint sequence_prospect foreign key (organization_id, prospect_id)
    references recruitment.prospect (organization_id, id) on delete set null (prospect_id),
  constraint sequence_email_address foreign key (organization_id, email_address_id)
    references recruitment.email_address (organization_id, id) on delete set null (email_address_id),
  constraint sequence_inbox foreign key (organization_id, inbox_id) references recruitment.inbox (organization_id, id),
  constraint sequence_ended_has_time check ((state in ('waiting', 'active')) = (ended_at is null)),
  constraint sequence_failed_has_reason check ((state = 'failed') = (failed_reason is not null)),
  constraint sequence_due_has_inbox check (due_at is null or inbox_id is not null)
);
comment on table recruitment.sequence is 'The emails of a campaign to one prospect, in the order of its steps.';
comment on column recruitment.sequence.prospect_id is 'Null once the prospect was erased: the counts stay.';
comment on column recruitment.sequence.inbox_id is 'The inbox that it sends from, which stays the same. Null: not scheduled yet.';
comment on column recruitment.sequence.email_address_id is 'The address that it writes to. Null: not chosen yet, or deleted since.';
comment on column recruitment.sequence.address_hmac is 'HMAC-SHA256 of that address: one sequence of an organization is open for it.';
comment on column recruitment.sequence.company_hmac is 'HMAC-SHA256 of its registrable domain. Null: a domain of a provider of free mail.';
comment on column recruitment.sequence.open is 'It has not ended. Whether it is paused follows from its campaign, its inbox, `paused_by_user` and `paused_until`.';
comment on column recruitment.sequence.next_step is 'The step of its next email; the number of steps once all were sent, until replies were waited for.';
comment on column recruitment.sequence.due_at is 'The earliest time of its next email, inside the schedule; after the last one, when it is complete. Null: not scheduled yet.';
comment on column recruitment.sequence.paused_until is 'An automatic reply said when the prospect is back.';
create unique index sequence_address_unique on recruitment.sequence (organization_id, address_hmac) where open and address_hmac is not null;
create index sequence_due on recruitment.sequence (organization_id, inbox_id, due_at) where open and due_at is not null;
create index sequence_to_schedule on recruitment.sequence (organization_id, campaign_id, id) where open and due_at is null;
create index sequence_open on recruitment.sequence (organization_id, campaign_id, inbox_id) where open;
create index sequence_by_prospect on recruitment.sequence (organization_id, prospect_id, id);
create index sequence_by_company on recruitment.sequence (organization_id, campaign_id, company_hmac) where open and company_hmac is not null;
create index sequence_by_domain on recruitment.sequence (organization_id, domain_hmac) where open;

create table recruitment.thread (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  brand_id text collate "C" not null,
  prospect_id text collate "C",
  inbox_id text collate "C" not null,
  campaign_id text collate "C",
  sequence_id text collate "C",
  subject text,
  messages integer not null default 0,
  reply_kind text,
  needs_review boolean not null default false,
  last_message_at timestamptz(3) not null,
  last_reply_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint thread_brand foreign key (organization_id, brand_id) references recruitment.brand (organization_id, id),
  constraint thread_prospect foreign key (organization_id, prospect_id)
    references recruitment.prospect (organization_id, id) on delete set null (prospect_id),
  constraint thread_inbox foreign key (organization_id, inbox_id) references recruitment.inbox (organization_id, id),
  constraint thread_sequence foreign key (organization_id, sequence_id)
    references recruitment.sequence (organization_id, id) on delete set null (sequence_id)
);
comment on table recruitment.thread is 'The messages between an inbox and a prospect that answer each other.';
create index thread_by_brand on recruitment.thread (organization_id, brand_id, id);
create index thread_by_prospect on recruitment.thread (organization_id, prospect_id, id);

create table recruitment.message (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  thread_id text collate "C",
  brand_id text collate "C" not null,
  prospect_id text collate "C",
  campaign_id text collate "C",
  sequence_id text collate "C",
  inbox_id text collate "C" not null,
  direction text not null constraint message_direction_known check (direction in ('outbound', 'inbound')),
  purpose text not null constraint message_purpose_known
    check (purpose in ('sequence', 'invitation', 'answer', 'test', 'reply', 'auto_reply', 'unsubscribe', 'bounce', 'complaint')),
  state text not null constraint message_state_known check (case direction
    when 'outbound' then state in ('planned', 'sending', 'sent', 'failed', 'unknown', 'bounced', 'cancelled')
    else state = 'received' end),
  phase text constraint message_phase_known check (phase in ('claimed', 'data')),
  step_index integer constraint message_step_index_not_negative check (step_index >= 0),
  variant integer constraint message_variant_not_negative check (variant >= 0),
  subject text,
  body_text text,
  body_html text,
  rfc_message_id text not null,
  in_reply_to text,
  reference_ids text[] not null default '{}',
  email_address_id text collate "C",
  address_hmac bytea,
  domain_hmac bytea,
  reply_kind text constraint message_reply_kind_known
    check (reply_kind in ('positive', 'question', 'not_now', 'negative', 'wrong_person', 'angry')),
  confidence real constraint message_confidence_in_range check (confidence between 0 and 1),
  needs_review boolean not null default false,
  language_code text,
  named jsonb,
  failed_reason text constraint message_failed_reason_known
    check (failed_reason in ('recipient_refused', 'sender_refused', 'content_refused', 'too_large', 'quota', 'timeout')),
  server_answer text,
  attempts integer not null default 0,
  first_attempt_at timestamptz(3),
  claimed_by text collate "C",
  claimed_at timestamptz(3),
  counted_on date,
  copied_at timestamptz(3),
  sent_at timestamptz(3),
  bounced_at timestamptz(3),
  received_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint message_prospect foreign key (organization_id, prospect_id)
    references recruitment.prospect (organization_id, id) on delete set null (prospect_id),
  constraint message_sequence foreign key (organization_id, sequence_id)
    references recruitment.sequence (organization_id, id) on delete set null (sequence_id),
  constraint message_thread foreign key (organization_id, thread_id) references recruitment.thread (organization_id, id),
  constraint message_inbox foreign key (organization_id, inbox_id) references recruitment.inbox (organization_id, id),
  constraint message_rfc_message_id_unique unique (organization_id, inbox_id, rfc_message_id),
  constraint message_sending_has_phase check ((state = 'sending') = (phase is not null)),
  constraint message_failed_has_reason check ((state = 'failed') = (failed_reason is not null))
);
comment on table recruitment.message is 'An email that went out, or came in and answers one that did.';
comment on column recruitment.message.phase is
  'Of a message that is being sent. claimed: the server cannot have accepted it; data: it may have, since the end of its data was about to be sent.';
comment on column recruitment.message.variant is 'Which text of the step: 0 is the step''s own, 1 its first variant.';
comment on column recruitment.message.rfc_message_id is 'Its Message-ID, without angle brackets; of an outbound message made from its id.';
comment on column recruitment.message.address_hmac is 'HMAC-SHA256 of the recipient''s or sender''s address, which survives erasing: who unsubscribes later is barred by it.';
comment on column recruitment.message.claimed_by is 'The worker that sends it.';
comment on column recruitment.message.counted_on is 'The day of the inbox that it is counted on (inbox_day).';
comment on column recruitment.message.copied_at is 'When its copy was put in the Sent folder.';
comment on column recruitment.message.named is 'Whom a reply names instead of the prospect: {name, email}.';
create unique index message_step_unique on recruitment.message (organization_id, sequence_id, step_index) where purpose = 'sequence';
create index message_by_thread on recruitment.message (organization_id, thread_id, id);
create index message_by_prospect on recruitment.message (organization_id, prospect_id, id);
create index message_by_campaign on recruitment.message (organization_id, campaign_id, step_index, variant) where campaign_id is not null;
create index message_sent on recruitment.message (organization_id, campaign_id, sent_at) include (bounced_at) where sent_at is not null and purpose = 'sequence';
create index message_by_rfc_message_id on recruitment.message (organization_id, rfc_message_id);
create index message_by_address on recruitment.message (organization_id, inbox_id, address_hmac, id);
create index message_sending on recruitment.message (claimed_by) where state = 'sending';
create index message_planned on recruitment.message (organization_id, inbox_id) where state = 'planned';

create table recruitment.campaign_day (
  organization_id text collate "C" not null references core.organization on delete cascade,
  campaign_id text collate "C" not null,
  day date not null,
  begun integer not null constraint campaign_day_begun_not_negative check (begun >= 0),
  primary key (organization_id, campaign_id, day),
  constraint campaign_day_campaign foreign key (organization_id, campaign_id) references recruitment.campaign (organization_id, id) on delete cascade
);
comment on table recruitment.campaign_day is 'First emails of a campaign on a day of its zone: what daily_new_limit limits.';

create table recruitment.company_day (
  organization_id text collate "C" not null references core.organization on delete cascade,
  campaign_id text collate "C" not null,
  day date not null,
  company_hmac bytea not null,
  sent integer not null constraint company_day_sent_not_negative check (sent >= 0),
  primary key (organization_id, campaign_id, day, company_hmac),
  constraint company_day_campaign foreign key (organization_id, campaign_id) references recruitment.campaign (organization_id, id) on delete cascade
);
comment on table recruitment.company_day is 'Emails of a campaign to one company on a day of its zone: what max_per_domain_day limits.';

create table recruitment.organization_day (
  organization_id text collate "C" not null references core.organization on delete cascade,
  day date not null,
  sent integer not null constraint organization_day_sent_not_negative check (sent >= 0),
  primary key (organization_id, day)
);
comment on table recruitment.organization_day is 'Emails of campaigns on a day in UTC: what the plan limits. Counted where the plan has a limit.';

call core.protect_tenant_table('recruitment.inbox_day');
call core.protect_tenant_table('recruitment.inbox_folder');
call core.protect_tenant_table('recruitment.campaign');
call core.protect_tenant_table('recruitment.sequence');
call core.protect_tenant_table('recruitment.thread');
call core.protect_tenant_table('recruitment.message');
call core.protect_tenant_table('recruitment.campaign_day');
call core.protect_tenant_table('recruitment.company_day');
call core.protect_tenant_table('recruitment.organization_day');
