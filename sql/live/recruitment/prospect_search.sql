-- The prospects of the caller's organization that have all of these words of the search column, and match a search text. It runs as the owner of
-- the table: under row-level security no index would be used for full text, because Postgres trusts its operator with the rows of others.
-- Hence the condition on the organization, and the words, of which one names the brand.
create or replace function recruitment.find_prospects(words text[], query text) returns setof text
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  asked tsquery := websearch_to_tsquery('simple', query);
  word text;
begin
  if numnode(asked) = 0 then
    return;
  end if;
  foreach word in array words loop
    asked := (quote_literal(word))::tsquery && asked;
  end loop;
  -- Planned for these words each time: how many have them differs by orders of magnitude.
  return query execute
    'select p.id from recruitment.prospect p '
    'where p.search @@ $1 and p.organization_id = current_setting(''rail.organization_id'', true)'
    using asked;
end
$$;
comment on function recruitment.find_prospects(text[], text) is
  'The ids of the prospects whose search column has these words, such as brand=fbr_…, and matches a search text.';
revoke execute on function recruitment.find_prospects(text[], text) from public;
grant execute on function recruitment.find_prospects(text[], text) to rail_api;
