-- Runs outside a transaction. What an inbox sent and which complaints it received within the last 28 days.
create index concurrently if not exists message_sent_by_inbox on recruitment.message (organization_id, inbox_id, sent_at) include (bounced_at)
  where direction = 'outbound' and sent_at is not null;

create index concurrently if not exists message_complaints on recruitment.message (organization_id, inbox_id, received_at)
  where purpose = 'complaint';
