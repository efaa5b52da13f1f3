-- The event log is listed in the strict sequence: by position, which the indexes of its lists now hold in the place of the id.

grant select on sequence webhooks.event_position to rail_api;

drop index webhooks.event_by_program;
create index event_by_program on webhooks.event (organization_id, program_id, position, id) include (created_at);
drop index webhooks.event_by_type;
create index event_by_type on webhooks.event (organization_id, program_id, type, position, id);
drop index webhooks.event_by_partner;
create index event_by_partner on webhooks.event (organization_id, program_id, partner_id, position, id) where partner_id is not null;
