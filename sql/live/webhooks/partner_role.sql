-- Finds what belongs to a postback of a partner's, for the policies of core/partner_role.sql: the partner's own policies apply to what is looked up here.

create or replace function webhooks.sees_endpoint(endpoint text) returns boolean
language sql stable
as $$
  select exists (select from webhooks.endpoint e where e.organization_id = current_setting('rail.organization_id', true) and e.id = endpoint)
$$;

create or replace function webhooks.sees_delivery(delivery text) returns boolean
language sql stable
as $$
  select exists (select from webhooks.delivery d where d.organization_id = current_setting('rail.organization_id', true) and d.id = delivery)
$$;
