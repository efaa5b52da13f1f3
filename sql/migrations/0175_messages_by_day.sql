-- Runs outside a transaction: emails are written while the indexes are built.
-- What happened to emails on the days of data.outreach_daily.

create index concurrently if not exists message_by_sent_at on recruitment.message (organization_id, sent_at)
where direction = 'outbound' and sent_at is not null;

create index concurrently if not exists message_by_bounced_at on recruitment.message (organization_id, bounced_at)
where bounced_at is not null;

create index concurrently if not exists message_by_unsubscribed_at on recruitment.message (organization_id, unsubscribed_at)
where unsubscribed_at is not null;

create index concurrently if not exists reply_by_received_at on recruitment.message (organization_id, received_at)
where purpose in ('reply', 'unsubscribe') and received_at is not null;
