-- Endpoints that receive no personal data. What they receive of an event is its body with these fields in place of its own.
alter table webhooks.endpoint add column personal_data boolean not null default true;
comment on column webhooks.endpoint.personal_data is 'False: personal fields are null in what it receives, and emails in texts are hidden. Never changes, so that the log shows what was sent.';

alter table webhooks.event add column without_personal json;
comment on column webhooks.event.without_personal is 'The fields of data as endpoints without personal data receive them, where they differ. Null: none does.';

drop function if exists webhooks.body_for(text, text, text, text, text);
