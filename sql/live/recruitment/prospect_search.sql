-- The words of a search box as a query, in the form in which texts are indexed (`recruitment.words_of`). In a script without spaces a run of
-- characters is a phrase of its pairs; a character by itself begins a pair. Postgres nests a negation for each dash in front of a word, and
-- refuses more than 32: a run of them is one.
create or replace function recruitment.search_query(text text) returns tsquery
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  plain text := recruitment.plain_text(text);
  unspaced text;
  has_pairs boolean := false;
  asked tsquery;
begin
  if octet_length(plain) <> char_length(plain) then
    unspaced := recruitment.unspaced();
    has_pairs := plain ~ ('[' || unspaced || ']');
  end if;
  if has_pairs then
    select string_agg(recruitment.pairs_of_query(s.part, s.nth % 2 = 0), '"' order by s.nth) into plain
    from unnest(string_to_array(plain, '"')) with ordinality as s (part, nth);
  end if;
  asked := websearch_to_tsquery('simple', regexp_replace(plain, '(?<![[:alnum:]])-(?:[^[:alnum:]"]*-)+', '-', 'g'));
  if has_pairs then
    return regexp_replace(asked::text, '''([' || unspaced || '])''', '''\1'':*', 'g')::tsquery;
  end if;
  return asked;
end
$$;
comment on function recruitment.search_query(text) is
  'The query of a search text: all words, phrases in quotation marks, or, and a dash in front of a word that is not to be there.';

-- A part of a search text between two quotation marks, or outside of them: there, each run of characters becomes a phrase of its own. In a phrase
-- that goes on after a run, the last character of the run is a word too, as it is in the index.
create or replace function recruitment.pairs_of_query(part text, is_quoted boolean) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(string_agg(
    case
      when r.part[1] is null then r.part[2]
      when is_quoted then ' ' || recruitment.pairs_of(r.part[1], r.nth < r.parts) || ' '
      else '"' || recruitment.pairs_of(r.part[1], false) || '" '
    end,
    '' order by r.nth
  ), '')
  from (
    select m.part, m.nth, count(*) over () as parts
    from regexp_matches(
      pairs_of_query.part, '([' || recruitment.unspaced() || ']+)|([^' || recruitment.unspaced() || ']+)', 'g'
    ) with ordinality as m (part, nth)
  ) as r
$$;

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

-- A page of the prospects that `find_prospects` finds, and how many there are on all pages, in one look: `also` has conditions that are not
-- among the words. `query` may be null: then it goes by the words alone.
create or replace function recruitment.prospect_page(words text[], query text, also jsonb, beyond text, ascending boolean, most integer)
returns table (count bigint, ids text[])
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set work_mem = '32MB'
as $$
declare
  asked tsquery := recruitment.search_query(query);
  word text;
  conditions text;
begin
  if numnode(asked) = 0 then
    return query select 0::bigint, '{}'::text[];
    return;
  end if;
  foreach word in array words loop
    asked := case when asked is null then quote_literal(word)::tsquery else quote_literal(word)::tsquery && asked end;
  end loop;
  select string_agg(' and ' || c.condition, '') into conditions
  from (
    values
      ('min_followers', 'p.followers >= ($2 ->> ''min_followers'')::bigint'),
      ('max_followers', 'p.followers <= ($2 ->> ''max_followers'')::bigint'),
      ('assignee_member_id', case also ->> 'assignee_member_id'
        when 'none' then 'p.assignee_member_id is null' else 'p.assignee_member_id = $2 ->> ''assignee_member_id''' end),
      ('do_not_contact', '(p.do_not_contact_reason is not null) = ($2 ->> ''do_not_contact'')::boolean'),
      ('unsubscribed', '(p.unsubscribed_at is not null) = ($2 ->> ''unsubscribed'')::boolean'),
      ('invited', '(p.invited_at is not null) = ($2 ->> ''invited'')::boolean'),
      ('signed_up', '(p.signed_up_at is not null) = ($2 ->> ''signed_up'')::boolean'),
      ('search_id', 'p.source_run_id = $2 ->> ''search_id'''),
      ('scan_id', 'p.source_run_id = $2 ->> ''scan_id'''),
      ('created_after', 'p.created_at >= ($2 ->> ''created_after'')::timestamptz'),
      ('created_before', 'p.created_at < ($2 ->> ''created_before'')::timestamptz'),
      ('list_id', 'p.id in (select x.prospect_id from recruitment.list_prospect x '
        'where x.organization_id = p.organization_id and x.list_id = $2 ->> ''list_id'')')
  ) as c (name, condition)
  where also ? c.name;
  return query execute format(
    'with found as materialized ('
    'select p.id from recruitment.prospect p '
    'where p.search @@ $1 and p.organization_id = current_setting(''rail.organization_id'', true)%s) '
    'select (select count(*) from found), '
    'array(select f.id from found f where $3 is null or f.id %s $3 order by f.id %s limit $4)',
    conditions, case when ascending then '>' else '<' end, case when ascending then 'asc' else 'desc' end
  )
  using asked, also, beyond, most;
end
$$;
comment on function recruitment.prospect_page(text[], text, jsonb, text, boolean, integer) is
  'The first ids beyond a cursor of the prospects whose search column has these words and matches a search text, and how many these are.';
revoke execute on function recruitment.prospect_page(text[], text, jsonb, text, boolean, integer) from public;
grant execute on function recruitment.prospect_page(text[], text, jsonb, text, boolean, integer) to rail_api;
