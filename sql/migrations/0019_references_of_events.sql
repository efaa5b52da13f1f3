-- Webhooks serve several products. Their columns keep their names, which the version before reads and writes too.

comment on column webhooks.event.program_id is 'What the event is about: a program, or whatever another product tells events of, else the organization.';
comment on column webhooks.event.partner_id is 'Whose postbacks receive it too: a partner, or whoever has postbacks in another product; null: nobody''s.';
comment on column webhooks.endpoint.program_id is 'What it listens to: a program, or whatever another product tells events of, else the organization.';
comment on column webhooks.endpoint.partner_id is 'Set: a postback, which receives the events of this partner (in another product: of whoever has postbacks there) alone.';
comment on column webhooks.delivery.program_id is 'What its event is about, as in webhooks.event.';
