-- Every email that is returned for good has bounced; only a dead address is barred, and only dead addresses and blocks pause a campaign.
alter table recruitment.message
add column bounce_reason text constraint message_bounce_reason_check check (bounce_reason in ('dead', 'blocked', 'undelivered')),
add constraint message_bounce_reason_has_bounce check (bounce_reason is null or bounced_at is not null);

comment on column recruitment.message.bounce_reason is 'Why it bounced: dead (the address), blocked (the content, or who sends it), undelivered (a full mailbox, a timeout). Null: it has not.';

update recruitment.message m set bounce_reason = 'dead' where m.bounced_at is not null;
