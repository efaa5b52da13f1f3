-- The pages of the caller's organization that link to a domain, or, where that is null, have the words of a search text: the best first. In a
-- language, or, where that is null, in any. It runs as the owner of the table, as find_prospects does: under row-level security no index would be
-- used for words or links.
create or replace function recruitment.find_pages(words text, links_to text, spoken text, most integer, after integer)
returns table (url text, title text, description text, language_code text)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
  asked constant tsquery := recruitment.search_query(words);
begin
  if links_to is null then
    return query
      select p.url, p.title, p.description, p.language_code
      from recruitment.page p
      where p.organization_id = current_setting('rail.organization_id', true) and p.search @@ asked and (spoken is null or p.language_code = spoken)
      order by ts_rank(p.search, asked) desc, p.url
      limit most offset after;
  else
    return query
      select p.url, p.title, p.description, p.language_code
      from recruitment.page p
      where p.organization_id = current_setting('rail.organization_id', true) and p.linked_domains @> array[links_to]
        and (spoken is null or p.language_code = spoken)
      order by p.url
      limit most offset after;
  end if;
end
$$;
revoke execute on function recruitment.find_pages(text, text, text, integer, integer) from public;
grant execute on function recruitment.find_pages(text, text, text, integer, integer) to rail_api;
