-- Outreach: inboxes, campaigns, a sequence of emails for each prospect, the messages that went out and came in, and deals.

create table recruitment.inbox (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  email text not null,
  from_name text not null,
  smtp jsonb not null,
  imap jsonb not null,
  oauth jsonb,
  secrets bytea not null,
  daily_limit integer not null constraint inbox_daily_limit_in_range check (daily_limit between 1 and 500),
  ramp jsonb,
  min_gap_s integer not null constraint inbox_min_gap_not_negative check (min_gap_s >= 0),
  max_gap_s integer not null,
  reply_to text,
  signature text,
  timezone text not null,
  status text not null default 'connected' constraint inbox_status_known check (status in ('connected', 'disconnected')),
  disconnected_reason text
    constraint inbox_disconnected_reason_known check (disconnected_reason in ('auth_failed', 'connection_failed', 'removed', 'disabled')),
  connected_at timestamptz(3) not null,
  disconnected_at timestamptz(3),
  next_slot_at timestamptz(3),
  waits_until timestamptz(3),
  wait_s integer,
  auth_failures integer not null default 0,
  unreachable_since timestamptz(3),
  imap_last_seen_at timestamptz(3),
  rests_until timestamptz(3),
  rests_for text constraint inbox_rests_for_known check (rests_for in ('cap', 'plan')),
  authserv_id text,
  adds_copies boolean not null default false,
  looks_back_to timestamptz(3),
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint inbox_disconnected_has_reason check (
    (status = 'disconnected') = (disconnected_reason is not null) and (disconnected_reason is null) = (disconnected_at is null)
  ),
  constraint inbox_gaps_in_order check (max_gap_s >= min_gap_s)
);
comment on table recruitment.inbox is 'A mailbox that outreach is sent from and replies are read in.';
comment on column recruitment.inbox.smtp is '{host, port, security, username}';
comment on column recruitment.inbox.imap is '{host, port, security, username}';
comment on column recruitment.inbox.oauth is '{provider, client_id}. Null: it logs in by passwords.';
comment on column recruitment.inbox.secrets is
  'Passwords, or the client secret and the refresh token: JSON, AES-256-GCM with the key''s id in front.';
comment on column recruitment.inbox.ramp is
  '{start, step}: what it sends on its first day, and by how much more on each day after one that sent. Null: daily_limit at once.';
comment on column recruitment.inbox.next_slot_at is 'The earliest time of its next email: the last one and the gap. Null: none was sent.';
comment on column recruitment.inbox.waits_until is 'Its provider refused more for now (quota): nothing is sent before.';
comment on column recruitment.inbox.wait_s is 'How long it waited the last time: the next wait is twice as long. Null: it does not wait.';
comment on column recruitment.inbox.auth_failures is 'Logins that were refused since the last that was not.';
comment on column recruitment.inbox.unreachable_since is 'Since when a server of it cannot be reached. Null: it can.';
comment on column recruitment.inbox.imap_last_seen_at is 'When it was last read.';
comment on column recruitment.inbox.rests_until is 'It may send no more before: a limit of the day was reached. A person''s emails go all the same.';
comment on column recruitment.inbox.rests_for is 'What rests_until waits for: its daily limit (cap), or that of the plan. Null: it does not rest.';
comment on column recruitment.inbox.authserv_id is
  'The name that its mail server signs Authentication-Results with. Null: known for large providers alone.';
comment on column recruitment.inbox.adds_copies is
  'Whether copies had to be put into its Sent folder, because its server makes none: then what was sent in the last minutes may lack one.';
comment on column recruitment.inbox.looks_back_to is
  'The database was restored: before it sends again, what it sent since then is read from its Sent folder (sent_before). Null: it has been.';
create index inbox_connected on recruitment.inbox (organization_id, id) where status = 'connected' and deleted_at is null;
create unique index inbox_email_unique on recruitment.inbox (organization_id, lower(email)) where deleted_at is null;
call core.protect_tenant_table('recruitment.inbox');

create table recruitment.inbox_day (
  organization_id text collate "C" not null references core.organization on delete cascade,
  inbox_id text collate "C" not null,
  day date not null,
  sent integer not null constraint inbox_day_sent_not_negative check (sent >= 0),
  primary key (organization_id, inbox_id, day),
  constraint inbox_day_inbox foreign key (organization_id, inbox_id) references recruitment.inbox
);
comment on table recruitment.inbox_day is
  'What an inbox sent on a day of its zone: what was accepted, what may have been (unknown), and what is being sent. People''s own emails included.';
call core.protect_tenant_table('recruitment.inbox_day');

create table recruitment.sent_before (
  organization_id text collate "C" not null references core.organization on delete cascade,
  key text collate "C" not null,
  message_id text collate "C",
  sent_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, key),
  constraint sent_before_is_known_or_not check ((message_id is null) = (sent_at is null))
);
comment on table recruitment.sent_before is
  'Emails that were sent by a state of the database that a restore has lost: whose turn it is again is recorded, and not sent. They go after 180 days.';
comment on column recruitment.sent_before.key is
  'Of a step of a campaign the key of its prospect (X-Rail-Step), of another email the id of its message.';
comment on column recruitment.sent_before.message_id is 'The id that its message had. Null: nobody can tell whether it was sent.';
create index sent_before_by_created_at on recruitment.sent_before (created_at);
call core.protect_tenant_table('recruitment.sent_before');

create table recruitment.inbox_folder (
  organization_id text collate "C" not null references core.organization on delete cascade,
  inbox_id text collate "C" not null,
  folder text not null,
  uid_validity bigint not null,
  last_uid bigint not null,
  begun_uid bigint,
  tries integer not null default 0 constraint inbox_folder_tries_not_negative check (tries >= 0),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, inbox_id, folder),
  constraint inbox_folder_inbox foreign key (organization_id, inbox_id) references recruitment.inbox
);
comment on table recruitment.inbox_folder is 'Up to where a folder of an inbox was read: UIDVALIDITY and UID of RFC 9051.';
comment on column recruitment.inbox_folder.begun_uid is 'The email behind last_uid whose reading has begun. Null: none.';
comment on column recruitment.inbox_folder.tries is
  'How often it has begun: less of it is fetched the second time, and after the third it is set aside.';
call core.protect_tenant_table('recruitment.inbox_folder');

create table recruitment.inbox_reader (
  organization_id text collate "C" not null references core.organization on delete cascade,
  inbox_id text collate "C" not null,
  worker_id text collate "C",
  refused integer not null default 0 constraint inbox_reader_refused_not_negative check (refused >= 0),
  failed integer not null default 0 constraint inbox_reader_failed_not_negative check (failed >= 0),
  unreachable_since timestamptz(3),
  next_try_at timestamptz(3) not null default now(),
  login_answer text,
  primary key (organization_id, inbox_id),
  constraint inbox_reader_inbox foreign key (organization_id, inbox_id) references recruitment.inbox on delete cascade
);
comment on table recruitment.inbox_reader is 'Which worker holds the IMAP connection of an inbox.';
comment on column recruitment.inbox_reader.worker_id is 'The worker that reads the inbox. Null, or a worker that is gone: any may take it.';
comment on column recruitment.inbox_reader.refused is 'Logins that the IMAP server refused for certain, in a row: the third disconnects the inbox.';
comment on column recruitment.inbox_reader.login_answer is 'What the IMAP server said to the last login, where it failed, without the login itself.';
comment on column recruitment.inbox_reader.failed is 'Connections that failed in a row: each waits longer than the one before.';
comment on column recruitment.inbox_reader.unreachable_since is 'Since when no login succeeds: 15 minutes disconnect the inbox.';
comment on column recruitment.inbox_reader.next_try_at is 'The earliest time of the next connection.';
create index inbox_reader_by_worker on recruitment.inbox_reader (worker_id);
call core.protect_tenant_table('recruitment.inbox_reader');

create table recruitment.campaign (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  brand_id text collate "C" not null,
  name text not null,
  inbox_ids text[] not null default '{}'::text[],
  steps jsonb not null default '[]'::jsonb constraint campaign_steps_are_a_list check (jsonb_typeof(steps) = 'array'),
  schedule jsonb not null
    constraint campaign_schedule_form check (
      coalesce(
        jsonb_typeof(schedule -> 'timezone') = 'string' and jsonb_typeof(schedule -> 'days') = 'array'
        and schedule ->> 'from' ~ '^([01][0-9]|2[0-3]):[0-5][0-9]$' and schedule ->> 'to' ~ '^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$',
        false
      )
    ),
  daily_new_limit integer constraint campaign_daily_new_limit_positive check (daily_new_limit > 0),
  max_per_domain_day integer not null constraint campaign_max_per_domain_day_positive check (max_per_domain_day > 0),
  bounce_pause_bps integer not null constraint campaign_bounce_pause_bps_in_range check (bounce_pause_bps between 0 and 10000),
  reply_wait_days integer not null constraint campaign_reply_wait_days_not_negative check (reply_wait_days >= 0),
  allow_risky boolean not null,
  stop_for_company boolean not null,
  state text not null default 'draft'
    constraint campaign_state_known check (state in ('draft', 'scheduled', 'sending', 'paused', 'stopped', 'finished')),
  pause_causes text[] not null default '{}'::text[]
    constraint campaign_pause_causes_known check (pause_causes <@ array['user', 'guard', 'plan', 'inbox']),
  pause_reason text
    constraint campaign_pause_reason_known check (pause_reason in ('bounce_rate', 'spam_complaint', 'not_entitled', 'no_inbox')),
  counted_since timestamptz(3),
  counted_to timestamptz(3),
  counted_sent bigint not null default 0,
  counted_bounced bigint not null default 0,
  is_unscheduling boolean not null default false,
  start_at timestamptz(3),
  launch_error text,
  launched_at timestamptz(3),
  paused_at timestamptz(3),
  stopped_at timestamptz(3),
  finished_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint campaign_paused_has_cause check ((state = 'paused') = (pause_causes <> '{}')),
  constraint campaign_scheduled_has_start check (state <> 'scheduled' or start_at is not null),
  constraint campaign_brand foreign key (organization_id, brand_id) references recruitment.brand
);
comment on table recruitment.campaign is 'A campaign: the emails that prospects of a brand are sent, from which inboxes, and when.';
comment on column recruitment.campaign.inbox_ids is 'The inboxes that it sends from.';
comment on column recruitment.campaign.steps is
  'A list of {id, delay_days, weight, subject, body_text, body_html, variants: [{weight, subject, body_text, body_html}]}.';
comment on column recruitment.campaign.schedule is
  '{timezone, days, from, to}: when emails may be sent. The zone `recipient` is the one of each prospect.';
comment on column recruitment.campaign.pause_causes is 'Why it is paused: user, guard, plan, inbox. It sends again once none is left.';
comment on column recruitment.campaign.pause_reason is 'The reason of the pause, where the service paused it.';
comment on column recruitment.campaign.counted_since is
  'Since when sent and bounced emails are counted, for the limit of bounces: the launch, or the last pause.';
comment on column recruitment.campaign.counted_to is
  'Before when they are counted in `counted_sent` and `counted_bounced`: of emails that were sent since `counted_since`. Null: none is.';
comment on column recruitment.campaign.counted_sent is 'How many emails were accepted, and refused by the server for a dead address or a block.';
comment on column recruitment.campaign.counted_bounced is 'How many emails bounced, or were refused by the server: dead addresses and blocks.';
comment on column recruitment.campaign.is_unscheduling is
  'Whether a job still takes the times of its sequences, which a change has made void: until then it sends nothing.';
create index campaign_by_brand on recruitment.campaign (organization_id, brand_id, id);
create index campaign_open on recruitment.campaign (organization_id, id) where state not in ('stopped', 'finished');
create index campaign_sending on recruitment.campaign (organization_id, id) where state = 'sending';
create index campaign_to_start on recruitment.campaign (start_at) where state = 'scheduled';
call core.protect_tenant_table('recruitment.campaign');

create table recruitment.campaign_addition (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  campaign_id text collate "C" not null,
  list_id text collate "C" not null,
  state text not null default 'queued' constraint campaign_addition_state_known check (state in ('queued', 'running', 'done', 'failed')),
  total integer not null constraint campaign_addition_total_not_negative check (total >= 0),
  added integer not null default 0 constraint campaign_addition_added_not_negative check (added >= 0),
  refused jsonb not null default '{}'::jsonb,
  last_prospect_id text collate "C" not null default '',
  error text,
  by_user_id text collate "C",
  by_member_id text collate "C",
  finished_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint campaign_addition_ended_has_time check ((state in ('done', 'failed')) = (finished_at is not null)),
  constraint campaign_addition_failed_has_error check ((state = 'failed') = (error is not null)),
  constraint campaign_addition_campaign foreign key (organization_id, campaign_id) references recruitment.campaign on delete cascade
);
comment on table recruitment.campaign_addition is 'A list of prospects that is added to a campaign, by a job.';
comment on column recruitment.campaign_addition.refused is 'How many prospects were not added, by the reason.';
comment on column recruitment.campaign_addition.last_prospect_id is 'The prospects of the list up to this id were added or refused.';
create index campaign_addition_by_campaign on recruitment.campaign_addition (organization_id, campaign_id, id);
create index campaign_addition_running on recruitment.campaign_addition (organization_id, campaign_id) where finished_at is null;
call core.protect_tenant_table('recruitment.campaign_addition');

create table recruitment.campaign_day (
  organization_id text collate "C" not null references core.organization on delete cascade,
  campaign_id text collate "C" not null,
  day date not null,
  begun integer not null constraint campaign_day_begun_not_negative check (begun >= 0),
  primary key (organization_id, campaign_id, day),
  constraint campaign_day_campaign foreign key (organization_id, campaign_id) references recruitment.campaign on delete cascade
);
comment on table recruitment.campaign_day is 'First emails of a campaign on a day of its zone: what daily_new_limit limits.';
call core.protect_tenant_table('recruitment.campaign_day');

create table recruitment.company_day (
  organization_id text collate "C" not null references core.organization on delete cascade,
  campaign_id text collate "C" not null,
  day date not null,
  company_hmac bytea not null,
  sent integer not null constraint company_day_sent_not_negative check (sent >= 0),
  primary key (organization_id, campaign_id, day, company_hmac),
  constraint company_day_campaign foreign key (organization_id, campaign_id) references recruitment.campaign on delete cascade
);
comment on table recruitment.company_day is 'Emails of a campaign to one company on a day of its zone: what max_per_domain_day limits.';
call core.protect_tenant_table('recruitment.company_day');

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
  constraint thread_brand foreign key (organization_id, brand_id) references recruitment.brand,
  constraint thread_inbox foreign key (organization_id, inbox_id) references recruitment.inbox,
  constraint thread_prospect foreign key (organization_id, prospect_id) references recruitment.prospect on delete set null (prospect_id)
);
comment on table recruitment.thread is 'The messages between an inbox and a prospect that answer each other.';
create index thread_by_brand on recruitment.thread (organization_id, brand_id, id);
create index thread_by_kind on recruitment.thread (organization_id, brand_id, reply_kind, id) where reply_kind is not null;
create index thread_to_review on recruitment.thread (organization_id, brand_id, id) where needs_review;
create index thread_by_prospect on recruitment.thread (organization_id, prospect_id, id);
call core.protect_tenant_table('recruitment.thread');

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
  state text not null default 'waiting'
    constraint sequence_state_known check (state in ('waiting', 'active', 'completed', 'replied', 'bounced', 'unsubscribed', 'stopped', 'failed')),
  open boolean not null generated always as (state in ('waiting', 'active')) stored,
  next_step integer not null default 0 constraint sequence_next_step_not_negative check (next_step >= 0),
  due_at timestamptz(3),
  paused_by_user boolean not null default false,
  paused_until timestamptz(3),
  failed_reason text
    constraint sequence_failed_reason_known check (failed_reason in (
      'no_address', 'do_not_contact', 'suppressed', 'invalid_address', 'risky_address', 'in_another_campaign', 'inbox_removed', 'template_error',
      'recipient_refused', 'sender_refused', 'content_refused', 'too_large', 'quota', 'timeout'
    )),
  last_sent_at timestamptz(3),
  ended_at timestamptz(3),
  is_held boolean not null default false,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint sequence_prospect_unique unique (organization_id, campaign_id, prospect_id),
  constraint sequence_due_has_inbox check (due_at is null or inbox_id is not null),
  constraint sequence_ended_has_time check ((state in ('waiting', 'active')) = (ended_at is null)),
  constraint sequence_failed_has_reason check ((state = 'failed') = (failed_reason is not null)),
  constraint sequence_campaign foreign key (organization_id, campaign_id) references recruitment.campaign on delete cascade,
  constraint sequence_email_address
    foreign key (organization_id, email_address_id) references recruitment.email_address on delete set null (email_address_id),
  constraint sequence_inbox foreign key (organization_id, inbox_id) references recruitment.inbox,
  constraint sequence_prospect foreign key (organization_id, prospect_id) references recruitment.prospect on delete set null (prospect_id)
);
comment on table recruitment.sequence is 'The emails of a campaign to one prospect, in the order of its steps.';
comment on column recruitment.sequence.prospect_id is 'Null once the prospect was erased: the counts stay.';
comment on column recruitment.sequence.inbox_id is 'The inbox that it sends from, which stays the same. Null: not scheduled yet.';
comment on column recruitment.sequence.email_address_id is 'The address that it writes to. Null: not chosen yet, or deleted since.';
comment on column recruitment.sequence.address_hmac is 'HMAC-SHA256 of that address: one sequence of an organization is open for it.';
comment on column recruitment.sequence.company_hmac is 'HMAC-SHA256 of its registrable domain. Null: a domain of a provider of free mail.';
comment on column recruitment.sequence.open is
  'It has not ended. Whether it is paused follows from its campaign, its inbox, `paused_by_user` and `paused_until`.';
comment on column recruitment.sequence.next_step is
  'The step of its next email; the number of steps once all were sent, until replies were waited for.';
comment on column recruitment.sequence.due_at is
  'The earliest time of its next email, inside the schedule; after the last one, when it is complete. Null: not scheduled yet.';
comment on column recruitment.sequence.paused_until is 'An automatic reply said when the prospect is back.';
comment on column recruitment.sequence.is_held is 'Whether it waits for a person because its first email may not have been sent.';
create unique index sequence_address_unique on recruitment.sequence (organization_id, address_hmac) where open and address_hmac is not null;
create index sequence_by_company on recruitment.sequence (organization_id, company_hmac, campaign_id)
  where open and company_hmac is not null;
create index sequence_by_domain on recruitment.sequence (organization_id, domain_hmac) where open;
create index sequence_by_email_address on recruitment.sequence (organization_id, email_address_id) where email_address_id is not null;
create index sequence_by_prospect on recruitment.sequence (organization_id, prospect_id, id);
create index sequence_queue on recruitment.sequence (organization_id, inbox_id, campaign_id, state, paused_by_user, is_held, due_at)
  where open and due_at is not null;
create index sequence_open on recruitment.sequence (organization_id, campaign_id, inbox_id) where open;
create index sequence_open_of_prospect on recruitment.sequence (organization_id, prospect_id, id) where open;
create index sequence_to_complete on recruitment.sequence (organization_id, campaign_id, next_step, due_at)
  where state = 'active' and due_at is not null;
create index sequence_to_schedule on recruitment.sequence (organization_id, campaign_id, id) where open and due_at is null;
call core.protect_tenant_table('recruitment.sequence');

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
  purpose text not null
    constraint message_purpose_known check (purpose in ('sequence', 'invitation', 'answer', 'test', 'reply', 'auto_reply', 'unsubscribe', 'bounce', 'complaint')),
  state text not null,
  phase text constraint message_phase_known check (phase in ('claimed', 'data')),
  step_index integer constraint message_step_index_not_negative check (step_index >= 0),
  variant integer constraint message_variant_not_negative check (variant >= 0),
  subject text,
  body_text text,
  body_html text,
  rfc_message_id text not null,
  in_reply_to text,
  reference_ids text[] not null default '{}'::text[],
  email_address_id text collate "C",
  address_hmac bytea,
  domain_hmac bytea,
  reply_kind text
    constraint message_reply_kind_known check (reply_kind in ('positive', 'question', 'not_now', 'negative', 'wrong_person', 'angry')),
  confidence real constraint message_confidence_in_range check (confidence between 0 and 1),
  needs_review boolean not null default false,
  language_code text,
  named jsonb,
  failed_reason text
    constraint message_failed_reason_known check (failed_reason in ('recipient_refused', 'sender_refused', 'content_refused', 'too_large', 'quota', 'timeout')),
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
  unsubscribed_at timestamptz(3),
  due_at timestamptz(3),
  recipient bytea,
  has_footer boolean not null default true,
  campaign_counted_on date,
  organization_counted_on date,
  look_up_at timestamptz(3),
  look_ups integer not null default 0,
  content_hash bytea,
  bounce_reason text constraint message_bounce_reason_check check (bounce_reason in ('dead', 'blocked', 'undelivered')),
  auto_reply_kind text
    constraint message_auto_reply_kind_known check (auto_reply_kind in ('absence', 'receipt', 'challenge', 'invitation', 'reaction', 'other')),
  other_message_ids text[] not null default '{}'::text[],
  resends integer not null default 0 constraint message_resends_not_negative check (resends >= 0),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint message_rfc_message_id_unique unique (organization_id, inbox_id, rfc_message_id),
  constraint message_bounce_reason_has_bounce check (bounce_reason is null or bounced_at is not null),
  constraint message_failed_has_reason check ((state = 'failed') = (failed_reason is not null)),
  constraint message_sending_has_phase check ((state = 'sending') = (phase is not null)),
  constraint message_state_known check (case direction
  when 'outbound' then state in ('planned', 'sending', 'sent', 'failed', 'unknown', 'bounced', 'cancelled')
  else state = 'received' end),
  constraint message_inbox foreign key (organization_id, inbox_id) references recruitment.inbox,
  constraint message_prospect foreign key (organization_id, prospect_id) references recruitment.prospect on delete set null (prospect_id),
  constraint message_sequence foreign key (organization_id, sequence_id) references recruitment.sequence on delete set null (sequence_id),
  constraint message_thread foreign key (organization_id, thread_id) references recruitment.thread
);
comment on table recruitment.message is 'An email that went out, or came in and answers one that did.';
comment on column recruitment.message.phase is
  'Of a message that is being sent. claimed: the server cannot have accepted it; data: it may have, since the end of its data was about to be sent.';
comment on column recruitment.message.variant is 'Which text of the step: 0 is the step''s own, 1 its first variant.';
comment on column recruitment.message.rfc_message_id is 'Its Message-ID, without angle brackets; of an outbound message made from its id.';
comment on column recruitment.message.address_hmac is
  'HMAC-SHA256 of the recipient''s or sender''s address, which survives erasing: who unsubscribes later is barred by it.';
comment on column recruitment.message.named is 'Whom a reply names instead of the prospect: {name, email}.';
comment on column recruitment.message.claimed_by is 'The worker that sends it.';
comment on column recruitment.message.counted_on is 'The day of the inbox that it is counted on (inbox_day).';
comment on column recruitment.message.copied_at is 'When its copy was put in the Sent folder.';
comment on column recruitment.message.unsubscribed_at is 'When its recipient unsubscribed by its link or its address.';
comment on column recruitment.message.due_at is 'Of a planned email outside of campaigns: the earliest time of its next attempt. Null: at once.';
comment on column recruitment.message.recipient is 'The address of a team member that a test goes to, sealed. Null: the address of email_address_id.';
comment on column recruitment.message.has_footer is 'Whether it ends with the unsubscribe link: all do but a person''s answers.';
comment on column recruitment.message.campaign_counted_on is
  'The day of the campaign that it is counted on (campaign_day of a first step, company_day).';
comment on column recruitment.message.organization_counted_on is
  'The day in UTC that it is counted on (organization_day). Null: the plan had no limit.';
comment on column recruitment.message.look_up_at is 'Of an email that may have been sent: when it is looked for in the mailbox again.';
comment on column recruitment.message.content_hash is
  'SHA-256 of what an inbound email says: another email under the same Message-ID has another one. Null once the prospect was erased.';
comment on column recruitment.message.bounce_reason is
  'Why it bounced: dead (the address), blocked (the content, or who sends it), undelivered (a full mailbox, a timeout). Null: it has not.';
comment on column recruitment.message.auto_reply_kind is 'What a program answered. Null: no program did.';
comment on column recruitment.message.other_message_ids is
  'Message-IDs that it has besides: the one that its provider wrote, and those it had before it was sent again.';
comment on column recruitment.message.resends is 'How often it was sent again by request: each time it has a new Message-ID.';
create index message_addresses on recruitment.message (organization_id, prospect_id, address_hmac, thread_id, direction)
  where address_hmac is not null;
create index message_bounced on recruitment.message (organization_id, campaign_id, bounced_at) where bounced_at is not null;
create index message_by_address on recruitment.message (organization_id, inbox_id, address_hmac, id)
  where direction = 'outbound' and sequence_id is not null;
create index message_by_bounced_at on recruitment.message (organization_id, bounced_at)
  where bounced_at is not null;
create index message_by_brand on recruitment.message (organization_id, brand_id, id);
create index message_by_campaign on recruitment.message (organization_id, campaign_id, step_index, variant) where campaign_id is not null;
create index message_by_prospect on recruitment.message (organization_id, prospect_id, id);
create index message_by_purpose on recruitment.message (organization_id, prospect_id, purpose, received_at, id)
  where purpose in ('invitation', 'reply', 'unsubscribe');
create index message_by_rfc_message_id on recruitment.message (organization_id, rfc_message_id);
create index message_by_sent_at on recruitment.message (organization_id, sent_at)
  where direction = 'outbound' and sent_at is not null;
create index message_by_thread on recruitment.message (organization_id, thread_id, id);
create index message_sent_in_thread on recruitment.message (organization_id, thread_id, id) where direction = 'outbound';
create index message_to_review on recruitment.message (organization_id, thread_id) where needs_review;
create index message_by_unsubscribed_at on recruitment.message (organization_id, unsubscribed_at)
  where unsubscribed_at is not null;
create index message_complaints on recruitment.message (organization_id, inbox_id, received_at)
  where purpose = 'complaint';
create unique index message_sending_unique on recruitment.message (organization_id, inbox_id) where state = 'sending';
create index message_other_ids on recruitment.message using gin (other_message_ids) where other_message_ids <> '{}';
create index message_planned on recruitment.message (organization_id, inbox_id) where state = 'planned';
create index message_sending on recruitment.message (claimed_by) where state = 'sending';
create index message_sent on recruitment.message (organization_id, campaign_id, sent_at)
  include (bounced_at)
  where sent_at is not null and purpose = 'sequence';
create index message_sent_by_inbox on recruitment.message (organization_id, inbox_id, sent_at) include (bounced_at)
  where direction = 'outbound' and sent_at is not null;
create unique index message_step_unique on recruitment.message (organization_id, sequence_id, step_index) where purpose = 'sequence';
create index message_to_copy on recruitment.message (organization_id, inbox_id, sent_at)
  where direction = 'outbound' and sent_at is not null and copied_at is null;
create index message_to_look_up on recruitment.message (look_up_at) where look_up_at is not null;
create index message_unknown on recruitment.message (organization_id, inbox_id, claimed_at) where state = 'unknown';
create index reply_by_thread on recruitment.message (organization_id, thread_id, received_at, id) where purpose = 'reply';
create index reply_by_received_at on recruitment.message (organization_id, received_at)
  where purpose in ('reply', 'unsubscribe') and received_at is not null;
call core.protect_tenant_table('recruitment.message');

create table recruitment.mail_set_aside (
  organization_id text collate "C" not null references core.organization on delete cascade,
  inbox_id text collate "C" not null,
  folder text not null,
  uid_validity bigint not null,
  uid bigint not null,
  message_id text collate "C",
  tries integer not null default 1 constraint mail_set_aside_tries_positive check (tries > 0),
  next_try_at timestamptz(3) not null,
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, inbox_id, folder, uid_validity, uid),
  constraint mail_set_aside_inbox foreign key (organization_id, inbox_id) references recruitment.inbox on delete cascade,
  constraint mail_set_aside_message foreign key (organization_id, message_id) references recruitment.message on delete set null (message_id)
);
comment on table recruitment.mail_set_aside is 'An email in an inbox that reading failed at: it is read again at next_try_at.';
comment on column recruitment.mail_set_aside.message_id is
  'The message that stands for it until then. Null: it answers no email, or could not be kept.';
comment on column recruitment.mail_set_aside.tries is 'How often it was read. After the last try it is left out.';
create index mail_set_aside_by_message on recruitment.mail_set_aside (organization_id, message_id) where message_id is not null;
create index mail_set_aside_due on recruitment.mail_set_aside (organization_id, inbox_id, next_try_at);
call core.protect_tenant_table('recruitment.mail_set_aside');

create table recruitment.deal (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  brand_id text collate "C" not null,
  prospect_id text collate "C" not null,
  program_id text collate "C" not null,
  status text not null default 'draft'
    constraint deal_status_known check (status in ('draft', 'agreed', 'activating', 'active', 'cancelled')),
  version integer not null default 1,
  agreed_version integer,
  agreed_digest text,
  agreed_by text constraint deal_agreed_by_known check (agreed_by in ('member', 'prospect')),
  agreed_by_user_id text collate "C",
  agreed_at timestamptz(3),
  activated_by_user_id text collate "C",
  activated_by_member_id text collate "C",
  activated_at timestamptz(3),
  partner_id text collate "C",
  rule_id text collate "C",
  linked_existing boolean,
  bonus_id text collate "C",
  cancelled_at timestamptz(3),
  last_error text
    constraint deal_last_error_known check (
      last_error in (
        'no_address', 'partner_pending', 'partner_declined', 'partner_suspended', 'coupon_taken', 'group_not_found', 'currency_mismatch'
      )
    ),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint deal_active_has_partner check (
    (status = 'active') = (partner_id is not null)
    and (partner_id is null) = (rule_id is null)
    and (partner_id is null) = (linked_existing is null)
    and (partner_id is null) = (activated_at is null)
  ),
  constraint deal_agreement_follows_status check (
    case status when 'draft' then agreed_version is null when 'cancelled' then true else agreed_version is not null end
  ),
  constraint deal_agreement_is_whole check (
    (agreed_version is null) = (agreed_digest is null)
    and (agreed_version is null) = (agreed_by is null)
    and (agreed_version is null) = (agreed_at is null)
  ),
  constraint deal_cancelled_has_time check ((status = 'cancelled') = (cancelled_at is not null)),
  foreign key (organization_id, program_id) references program.program on delete cascade,
  constraint deal_prospect foreign key (organization_id, prospect_id) references recruitment.prospect on delete cascade
);
comment on table recruitment.deal is 'What was agreed with a prospect for a program; at most one of them is open.';
comment on column recruitment.deal.version is 'The last version of the terms.';
comment on column recruitment.deal.agreed_digest is 'Of the agreed version: the reference to it holds its terms as they are.';
comment on column recruitment.deal.activated_by_user_id is 'Who asked for the activation last.';
comment on column recruitment.deal.partner_id is
  'The partner of the affiliate program service, as rule_id and bonus_id (the upfront fee). They may be deleted there.';
create index deal_by_brand on recruitment.deal (organization_id, brand_id, id);
create index deal_by_partner on recruitment.deal (organization_id, partner_id, id) where partner_id is not null;
create index deal_by_program on recruitment.deal (organization_id, program_id, id);
create index deal_by_prospect on recruitment.deal (organization_id, prospect_id, id);
create index deal_current on recruitment.deal (organization_id, prospect_id, (status = 'active'), id desc) where status <> 'cancelled';
create unique index deal_one_open on recruitment.deal (organization_id, prospect_id, program_id)
  where status in ('draft', 'agreed', 'activating');
call core.protect_tenant_table('recruitment.deal');

create table recruitment.deal_version (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  deal_id text collate "C" not null,
  version integer not null constraint deal_version_positive check (version > 0),
  rate_type text not null constraint deal_version_rate_type_known check (rate_type in ('percent', 'fixed')),
  rate_value bigint not null,
  currency text not null constraint deal_version_currency_form check (currency ~ '^[A-Z]{3}$'),
  recurring_months integer constraint deal_version_recurring_months_positive check (recurring_months > 0),
  group_id text collate "C",
  coupon_code text,
  upfront_fee_minor bigint constraint deal_version_upfront_fee_positive check (upfront_fee_minor > 0),
  starts_on date,
  ends_on date,
  text text,
  created_by_user_id text collate "C",
  digest text not null generated always as (
    md5(
      rate_type || ' ' || rate_value::text || ' ' || currency || ' ' || coalesce(recurring_months::text, '') || ' '
        || coalesce(group_id, '') || ' ' || coalesce(upfront_fee_minor::text, '') || ' '
        || coalesce((starts_on - date '2000-01-01')::text, '') || ' ' || coalesce((ends_on - date '2000-01-01')::text, '') || ' '
        || coalesce(md5(coupon_code), '') || ' ' || coalesce(md5(text), '')
    )
  ) stored,
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint deal_version_digest_unique unique (organization_id, deal_id, version, digest),
  constraint deal_version_unique unique (organization_id, deal_id, version),
  constraint deal_version_dates_in_order check (starts_on <= ends_on),
  constraint deal_version_rate_in_bounds check (rate_value >= 0 and (rate_type <> 'percent' or rate_value <= 1000000)),
  constraint deal_version_deal foreign key (organization_id, deal_id) references recruitment.deal on delete cascade
);
comment on table recruitment.deal_version is 'The terms of a deal, each time that they were changed. Rows are added, and never changed.';
comment on column recruitment.deal_version.rate_value is 'percent: basis points; fixed: minor units of the currency.';
comment on column recruitment.deal_version.digest is 'Of the terms, for the reference from the deal that agreed on them.';
call core.protect_tenant_table('recruitment.deal_version');
-- The service itself can add versions, and neither change nor remove one; they go with their deal.
create policy deal_version_is_kept on recruitment.deal_version as restrictive for update using (false);
create policy deal_version_stays on recruitment.deal_version as restrictive for delete using (false);

create table recruitment.joining_cursor (
  organization_id text collate "C" not null references core.organization on delete cascade,
  program_id text collate "C" not null,
  position bigint not null default 0,
  primary key (organization_id, program_id),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table recruitment.joining_cursor is 'Up to which position of the event log partners of a program were looked for among invited prospects.';
call core.protect_tenant_table('recruitment.joining_cursor');

alter table recruitment.thread
  add constraint thread_sequence foreign key (organization_id, sequence_id)
    references recruitment.sequence on delete set null (sequence_id);
alter table recruitment.deal
  add constraint deal_agreed_terms foreign key (organization_id, id, agreed_version, agreed_digest)
    references recruitment.deal_version (organization_id, deal_id, version, digest);
alter table recruitment.deal
  add constraint deal_last_version foreign key (organization_id, id, version)
    references recruitment.deal_version (organization_id, deal_id, version) deferrable initially deferred;
