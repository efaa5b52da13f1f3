-- Views of the recruitment service: ids, states, counts and times. Email addresses, texts of emails and templates, notes and the free text of
-- deals are in none of them.

create or replace view data.brand with (security_barrier = true) as
select
  b.id,
  b.program_id,
  case when (select data.sees_personal()) then b.name else data.without_emails(b.name) end as name,
  case when (select data.sees_personal()) then b.website_url else data.without_emails(b.website_url) end as website_url,
  b.languages,
  b.countries,
  b.default_timezone,
  b.scan_schedule,
  b.created_at,
  b.updated_at
from recruitment.brand b
where b.organization_id = (select data.organization_id()) and b.deleted_at is null;
comment on view data.brand is 'Brands that affiliates are recruited for. Deleted brands are left out.';
comment on column data.brand.id is 'The brand (fbr_).';
comment on column data.brand.program_id is 'The program that prospects join (prg_). Null: none.';
comment on column data.brand.name is 'The name of the brand. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.brand.website_url is 'The website of the brand. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.brand.languages is 'ISO 639-1 codes of the languages of prospects. Empty: any.';
comment on column data.brand.countries is 'ISO 3166-1 alpha-2 codes of the countries of prospects. Empty: any.';
comment on column data.brand.default_timezone is 'The IANA time zone of the brand.';
comment on column data.brand.scan_schedule is 'weekly or off.';
comment on column data.brand.created_at is 'When it was recorded.';
comment on column data.brand.updated_at is 'When it last changed.';

create or replace view data.prospect with (security_barrier = true) as
select
  p.id,
  p.brand_id,
  p.channel,
  case when (select data.sees_personal()) then p.key end as key,
  case when (select data.sees_personal()) then p.name end as name,
  case when (select data.sees_personal()) then p.url end as url,
  p.country_code,
  p.language_code,
  p.timezone,
  p.followers,
  p.score,
  p.source,
  p.source_run_id,
  p.stage,
  p.saved,
  p.hidden,
  p.hidden_reason,
  p.assignee_member_id,
  p.do_not_contact_reason,
  p.do_not_contact_since,
  p.unsubscribed_at,
  p.invited_at,
  p.signed_up_at,
  p.partner_id,
  p.deal_id,
  p.email_status,
  p.sent,
  p.replies,
  p.last_sent_at,
  p.created_at,
  p.updated_at
from recruitment.prospect p join recruitment.brand b on b.organization_id = p.organization_id and b.id = p.brand_id
where p.organization_id = (select data.organization_id()) and b.deleted_at is null;
comment on view data.prospect is 'Prospects: who could become an affiliate of a brand. Erased prospects and those of deleted brands are left out, and so are sample prospects.';
comment on column data.prospect.id is 'The prospect (fdi_).';
comment on column data.prospect.brand_id is 'The brand (fbr_).';
comment on column data.prospect.channel is 'website, youtube, podcast, newsletter, instagram, tiktok, x or other.';
comment on column data.prospect.key is 'The prospect in its channel: a domain, the id of a channel, a handle. Personal: null unless the login was made with --personal-data.';
comment on column data.prospect.name is 'The name of the site, the channel or the person. Personal: null unless the login was made with --personal-data.';
comment on column data.prospect.url is 'Where the prospect publishes. Personal: null unless the login was made with --personal-data.';
comment on column data.prospect.country_code is 'ISO 3166-1 alpha-2 country code. Null: not known.';
comment on column data.prospect.language_code is 'ISO 639-1 language code. Null: not known.';
comment on column data.prospect.timezone is 'The IANA time zone. Null: not known.';
comment on column data.prospect.followers is 'How many people follow the prospect. Null: not known.';
comment on column data.prospect.score is 'How well the prospect fits the brand, 0 to 100. Null: not scored yet.';
comment on column data.prospect.source is 'manual, api, csv_import, search or scan.';
comment on column data.prospect.source_run_id is 'The search or scan that found the prospect (fsc_). Null: none did.';
comment on column data.prospect.stage is 'found, contacted, replied, interested, negotiating, agreed, active or lost.';
comment on column data.prospect.saved is 'Whether the prospect is saved. A prospect in a list is saved.';
comment on column data.prospect.hidden is 'Whether the prospect is hidden.';
comment on column data.prospect.hidden_reason is 'Why the prospect is hidden. Null: not hidden.';
comment on column data.prospect.assignee_member_id is 'The assignee (tm_). Null: nobody.';
comment on column data.prospect.do_not_contact_reason is 'manual, legal, angry_reply or complaint. Null: not marked Do not contact.';
comment on column data.prospect.do_not_contact_since is 'Since when the prospect is marked Do not contact. Null: not marked.';
comment on column data.prospect.unsubscribed_at is 'When the prospect unsubscribed. Null: not unsubscribed.';
comment on column data.prospect.invited_at is 'When the prospect was invited. Null: not invited.';
comment on column data.prospect.signed_up_at is 'When the prospect joined the program. Null: not yet.';
comment on column data.prospect.partner_id is 'The partner that the prospect became (part_). Null: none.';
comment on column data.prospect.deal_id is 'The current deal (fdl_). Null: none.';
comment on column data.prospect.email_status is 'none, found, verified or bounced.';
comment on column data.prospect.sent is 'How many emails were sent to the prospect.';
comment on column data.prospect.replies is 'How many replies came from the prospect.';
comment on column data.prospect.last_sent_at is 'When the last email was sent. Null: none was.';
comment on column data.prospect.created_at is 'When it was recorded.';
comment on column data.prospect.updated_at is 'When it last changed.';

create or replace view data.campaign with (security_barrier = true) as
select
  c.id,
  c.brand_id,
  case when (select data.sees_personal()) then c.name else data.without_emails(c.name) end as name,
  c.inbox_ids,
  c.state,
  c.pause_causes,
  c.pause_reason,
  c.daily_new_limit,
  c.max_per_domain_day,
  c.reply_wait_days,
  c.start_at,
  c.launched_at,
  c.paused_at,
  c.stopped_at,
  c.finished_at,
  c.created_at,
  c.updated_at
from recruitment.campaign c
where c.organization_id = (select data.organization_id());
comment on view data.campaign is 'Campaigns: emails, in steps, to prospects of a brand.';
comment on column data.campaign.id is 'The campaign (fca_).';
comment on column data.campaign.brand_id is 'The brand (fbr_).';
comment on column data.campaign.name is 'The name of the campaign. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.campaign.inbox_ids is 'The inboxes that it sends from (fin_).';
comment on column data.campaign.state is 'draft, scheduled, sending, paused, stopped or finished.';
comment on column data.campaign.pause_causes is 'Why it is paused: any of user, guard, plan and inbox. Empty: not paused.';
comment on column data.campaign.pause_reason is 'bounce_rate, spam_complaint, not_entitled or no_inbox. Null: not paused by the service.';
comment on column data.campaign.daily_new_limit is 'The most first emails in a day. Null: no limit.';
comment on column data.campaign.max_per_domain_day is 'The most emails to one company in a day.';
comment on column data.campaign.reply_wait_days is 'How many days after the last email a sequence waits for a reply.';
comment on column data.campaign.start_at is 'When it is to start. Null: at once, or not launched.';
comment on column data.campaign.launched_at is 'When it started. Null: not yet.';
comment on column data.campaign.paused_at is 'When it was last paused. Null: never.';
comment on column data.campaign.stopped_at is 'When it was stopped. Null: not stopped.';
comment on column data.campaign.finished_at is 'When it finished. Null: not finished.';
comment on column data.campaign.created_at is 'When it was recorded.';
comment on column data.campaign.updated_at is 'When it last changed.';

create or replace view data.sequence with (security_barrier = true) as
select
  s.id,
  s.brand_id,
  s.campaign_id,
  s.prospect_id,
  s.inbox_id,
  s.thread_id,
  s.state,
  s.next_step,
  case when s.open then s.due_at end as due_at,
  s.paused_by_user,
  s.paused_until,
  s.failed_reason,
  s.last_sent_at,
  s.ended_at,
  s.created_at,
  s.updated_at
from recruitment.sequence s
where s.organization_id = (select data.organization_id());
comment on view data.sequence is 'Sequences: the emails of a campaign to one prospect.';
comment on column data.sequence.id is 'The sequence (fsq_).';
comment on column data.sequence.brand_id is 'The brand (fbr_).';
comment on column data.sequence.campaign_id is 'The campaign (fca_).';
comment on column data.sequence.prospect_id is 'The prospect (fdi_). Null: the prospect was erased.';
comment on column data.sequence.inbox_id is 'The inbox that it sends from (fin_). Null: not scheduled yet.';
comment on column data.sequence.thread_id is 'The thread of its emails (fth_). Null: none was sent.';
comment on column data.sequence.state is 'waiting, active, completed, replied, bounced, unsubscribed, stopped or failed. A paused sequence is waiting or active here.';
comment on column data.sequence.next_step is 'The step that it sends next: 0 is the first. Once all were sent, it is the number of steps.';
comment on column data.sequence.due_at is 'The earliest time of its next email. Null: none is scheduled.';
comment on column data.sequence.paused_by_user is 'Whether it was paused by request.';
comment on column data.sequence.paused_until is 'Until when an automatic reply pauses it. Null: none does.';
comment on column data.sequence.failed_reason is 'Why it failed. Null unless failed.';
comment on column data.sequence.last_sent_at is 'When its last email was sent. Null: none was.';
comment on column data.sequence.ended_at is 'When it ended. Null: it is open.';
comment on column data.sequence.created_at is 'When it was recorded.';
comment on column data.sequence.updated_at is 'When it last changed.';

create or replace view data.message with (security_barrier = true) as
select
  m.id,
  m.brand_id,
  m.prospect_id,
  m.campaign_id,
  m.sequence_id,
  m.thread_id,
  m.inbox_id,
  m.direction,
  m.purpose,
  m.state,
  m.step_index,
  m.variant,
  m.reply_kind,
  m.confidence,
  m.needs_review,
  m.language_code,
  m.failed_reason,
  m.sent_at,
  m.bounced_at,
  m.received_at,
  m.created_at,
  m.updated_at,
  m.unsubscribed_at,
  m.bounce_reason,
  m.auto_reply_kind
from recruitment.message m
where m.organization_id = (select data.organization_id());
comment on view data.message is 'Emails to prospects and those that answer them, without addresses and texts.';
comment on column data.message.id is 'The message (fms_).';
comment on column data.message.brand_id is 'The brand (fbr_).';
comment on column data.message.prospect_id is 'The prospect (fdi_). Null: a test, or the prospect was erased.';
comment on column data.message.campaign_id is 'The campaign (fca_). Null: an email outside of campaigns.';
comment on column data.message.sequence_id is 'The sequence (fsq_). Null: an email outside of campaigns.';
comment on column data.message.thread_id is 'The thread (fth_). Null: a test, or not sent yet.';
comment on column data.message.inbox_id is 'The inbox that sends or received it (fin_).';
comment on column data.message.direction is 'outbound or inbound.';
comment on column data.message.purpose is 'Of outbound emails: sequence, invitation, answer or test. Of inbound ones: reply, auto_reply, unsubscribe, bounce or complaint.';
comment on column data.message.state is 'Of outbound emails: planned, sending, sent, failed, unknown, bounced or cancelled. Of inbound ones: received.';
comment on column data.message.step_index is 'The step of the campaign: 0 is the first. Null: not an email of a step.';
comment on column data.message.variant is 'The text of the step: 0 is its own, 1 its first variant. Null: not an email of a step.';
comment on column data.message.reply_kind is 'positive, question, not_now, negative, wrong_person or angry. Null: not a reply.';
comment on column data.message.confidence is 'How certain the kind of a reply is, from 0 to 1. Null: not a reply.';
comment on column data.message.needs_review is 'Whether a person should check it.';
comment on column data.message.language_code is 'ISO 639-1 language code of a reply. Null: not known.';
comment on column data.message.failed_reason is 'Why it could not be sent. Null unless failed.';
comment on column data.message.sent_at is 'When the server accepted it. Null: it has not.';
comment on column data.message.bounced_at is 'When it bounced. Null: it has not.';
comment on column data.message.received_at is 'When it came in. Null: an outbound email.';
comment on column data.message.created_at is 'When it was recorded.';
comment on column data.message.updated_at is 'When it last changed.';
comment on column data.message.unsubscribed_at is 'When its recipient unsubscribed by its link or by a reply to it. Null: not by this email.';
comment on column data.message.bounce_reason is 'Why it bounced: dead (the address), blocked (the content, or who sends it) or undelivered (a full mailbox, a timeout). Null: it has not.';
comment on column data.message.auto_reply_kind is 'What a program answered: absence, receipt, challenge, invitation, reaction or other. Null: not an automatic reply.';

create or replace view data.deal with (security_barrier = true) as
select
  d.id,
  d.brand_id,
  d.prospect_id,
  d.program_id,
  d.status,
  d.version,
  d.agreed_version,
  v.rate_type,
  v.rate_value,
  v.currency,
  v.recurring_months,
  v.upfront_fee_minor,
  v.starts_on,
  v.ends_on,
  d.agreed_by,
  d.agreed_at,
  d.partner_id,
  d.rule_id,
  d.linked_existing,
  d.activated_at,
  d.cancelled_at,
  d.created_at,
  d.updated_at
from recruitment.deal d
join recruitment.brand b on b.organization_id = d.organization_id and b.id = d.brand_id
join recruitment.deal_version v
  on v.organization_id = d.organization_id and v.deal_id = d.id
    and v.version = case when d.agreed_version is null then d.version else d.agreed_version end
where d.organization_id = (select data.organization_id()) and b.deleted_at is null;
comment on view data.deal is 'Deals with prospects, with the terms that were agreed or, until then, the last version of them. Their free text is left out.';
comment on column data.deal.id is 'The deal (fdl_).';
comment on column data.deal.brand_id is 'The brand (fbr_).';
comment on column data.deal.prospect_id is 'The prospect (fdi_).';
comment on column data.deal.program_id is 'The program (prg_).';
comment on column data.deal.status is 'draft, agreed, activating, active or cancelled.';
comment on column data.deal.version is 'The last version of the terms.';
comment on column data.deal.agreed_version is 'The version that was agreed, whose terms this row shows. Null: none; the row shows the last version.';
comment on column data.deal.rate_type is 'percent or fixed.';
comment on column data.deal.rate_value is 'The commission: basis points of a percent rate, minor units of a fixed one.';
comment on column data.deal.currency is 'ISO 4217 code of the currency of the amounts of this row.';
comment on column data.deal.recurring_months is 'How many months of a customer''s payments earn commissions. Null: all.';
comment on column data.deal.upfront_fee_minor is 'A fee that is paid once, in minor units. Null: none.';
comment on column data.deal.starts_on is 'The first day (UTC) of the terms. Null: no start.';
comment on column data.deal.ends_on is 'The last day (UTC) of the terms. Null: no end.';
comment on column data.deal.agreed_by is 'member or prospect. Null: not agreed.';
comment on column data.deal.agreed_at is 'When it was agreed. Null: not agreed.';
comment on column data.deal.partner_id is 'The partner that it created or linked (part_). Null: not active.';
comment on column data.deal.rule_id is 'The commission rule that it created (flw_). Null: not active.';
comment on column data.deal.linked_existing is 'Whether the partner existed before. Null: not active.';
comment on column data.deal.activated_at is 'When it became active. Null: it is not.';
comment on column data.deal.cancelled_at is 'When it was cancelled. Null: it is not.';
comment on column data.deal.created_at is 'When it was recorded.';
comment on column data.deal.updated_at is 'When it last changed.';

-- Rollups by day, as in daily.sql: a condition on the day leaves days out before their rows are read.
create or replace view data.outreach_daily with (security_barrier = true) as
select
  d.day, m.brand_id, m.campaign_id, m.sent, m.first_emails, m.bounced, m.replies, m.interested_replies, m.unsubscribe_replies, m.unsubscribed
from (
  select d.day, d.starts_at, d.ends_at
  from core.days_between(
    least(
      (select m.sent_at from recruitment.message m where m.organization_id = (select data.organization_id()) and m.direction = 'outbound' and m.sent_at is not null order by m.sent_at limit 1),
      (select m.bounced_at from recruitment.message m where m.organization_id = (select data.organization_id()) and m.bounced_at is not null order by m.bounced_at limit 1),
      (select m.unsubscribed_at from recruitment.message m where m.organization_id = (select data.organization_id()) and m.unsubscribed_at is not null order by m.unsubscribed_at limit 1),
      (select m.received_at from recruitment.message m where m.organization_id = (select data.organization_id()) and m.purpose in ('reply', 'unsubscribe') and m.received_at is not null order by m.received_at limit 1)
    ),
    greatest(
      (select m.sent_at from recruitment.message m where m.organization_id = (select data.organization_id()) and m.direction = 'outbound' and m.sent_at is not null order by m.sent_at desc limit 1),
      (select m.bounced_at from recruitment.message m where m.organization_id = (select data.organization_id()) and m.bounced_at is not null order by m.bounced_at desc limit 1),
      (select m.unsubscribed_at from recruitment.message m where m.organization_id = (select data.organization_id()) and m.unsubscribed_at is not null order by m.unsubscribed_at desc limit 1),
      (select m.received_at from recruitment.message m where m.organization_id = (select data.organization_id()) and m.purpose in ('reply', 'unsubscribe') and m.received_at is not null order by m.received_at desc limit 1)
    )
  ) as d
  order by d.day desc
) as d
cross join lateral (
  select
    x.brand_id,
    x.campaign_id,
    count(*) filter (where x.what = 'sent') as sent,
    count(*) filter (where x.what = 'sent' and x.step_index = 0) as first_emails,
    count(*) filter (where x.what = 'bounced') as bounced,
    count(*) filter (where x.what = 'reply') as replies,
    count(*) filter (where x.what = 'reply' and x.reply_kind in ('positive', 'question')) as interested_replies,
    count(*) filter (where x.what = 'unsubscribe') as unsubscribe_replies,
    count(*) filter (where x.what = 'unsubscribed') as unsubscribed
  from (
    select 'sent' as what, m.brand_id, m.campaign_id, m.step_index, m.reply_kind
    from recruitment.message m
    where m.organization_id = (select data.organization_id()) and m.direction = 'outbound' and m.purpose <> 'test' and m.sent_at >= d.starts_at and m.sent_at < d.ends_at
    union all
    select 'bounced', m.brand_id, m.campaign_id, m.step_index, m.reply_kind
    from recruitment.message m
    where m.organization_id = (select data.organization_id()) and m.direction = 'outbound' and m.purpose <> 'test' and m.bounced_at >= d.starts_at and m.bounced_at < d.ends_at
    union all
    select 'unsubscribed', m.brand_id, m.campaign_id, m.step_index, m.reply_kind
    from recruitment.message m
    where m.organization_id = (select data.organization_id()) and m.direction = 'outbound' and m.purpose <> 'test' and m.unsubscribed_at >= d.starts_at and m.unsubscribed_at < d.ends_at
    union all
    select m.purpose, m.brand_id, m.campaign_id, m.step_index, m.reply_kind
    from recruitment.message m
    where m.organization_id = (select data.organization_id()) and m.purpose in ('reply', 'unsubscribe') and m.received_at >= d.starts_at and m.received_at < d.ends_at
  ) as x
  group by 1, 2
) as m;
comment on view data.outreach_daily is 'Emails and replies by day (UTC), brand and campaign. Tests are left out.';
comment on column data.outreach_daily.day is 'The day (UTC).';
comment on column data.outreach_daily.brand_id is 'The brand (fbr_).';
comment on column data.outreach_daily.campaign_id is 'The campaign (fca_). Null: emails outside of campaigns.';
comment on column data.outreach_daily.sent is 'Emails that were sent.';
comment on column data.outreach_daily.first_emails is 'Sent emails that were the first of a campaign to a prospect.';
comment on column data.outreach_daily.bounced is 'Emails that bounced on the day.';
comment on column data.outreach_daily.replies is 'Replies from people, without automatic replies and requests to unsubscribe.';
comment on column data.outreach_daily.interested_replies is 'Replies that are positive or a question.';
comment on column data.outreach_daily.unsubscribe_replies is 'Emails in which prospects ask to be unsubscribed.';
comment on column data.outreach_daily.unsubscribed is 'Emails whose recipient unsubscribed on the day, by the link in them or by a reply.';
