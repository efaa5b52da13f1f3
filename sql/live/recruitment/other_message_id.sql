-- The messages of the caller's organization that have one of these Message-IDs besides their own. It runs as the owner of the table: under
-- row-level security no index would be used for arrays, because Postgres trusts their operators with the rows of others. Hence the condition
-- on the organization.
create or replace function recruitment.messages_known_as(ids text[]) returns setof text
language sql stable security definer rows 1
set search_path = pg_catalog, pg_temp
as $$
  select m.id
  from recruitment.message m
  where m.organization_id = current_setting('rail.organization_id', true) and m.other_message_ids && ids and m.other_message_ids <> '{}'
$$;
revoke execute on function recruitment.messages_known_as(text[]) from public;
grant execute on function recruitment.messages_known_as(text[]) to rail_api;
