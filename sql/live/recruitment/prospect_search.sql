-- The words of a search box as a query. Postgres nests a negation for each dash in front of a word, and refuses more than 32: a run of them is one.
create or replace function recruitment.search_query(text text) returns tsquery
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select websearch_to_tsquery('simple', regexp_replace(text, '(?<![[:alnum:]])-(?:[^[:alnum:]"]*-)+', '-', 'g'))
$$;
comment on function recruitment.search_query(text) is
  'The query of a search text: all words, phrases in quotation marks, or, and a dash in front of a word that is not to be there.';

-- The prospects of the caller's organization that have all of these words of the search column, and match a search text. It runs as the owner of
-- the table: under row-level security no index would be used for full text, because Postgres trusts its operator with the rows of others.
-- Hence the condition on the organization, and the words, of which one names the brand.
create or replace function recruitment.find_prospects(words text[], query text) returns setof text
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  asked tsquery := recruitment.search_query(query);
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
