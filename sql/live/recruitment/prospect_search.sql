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

-- By the statistics of the search column. Volatile, because others may not explain a statement.
create or replace function recruitment.estimated_prospects(asked tsquery) returns numeric
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  plan json;
begin
  execute 'explain (format json) select from recruitment.prospect p where p.search @@ $1' into plan using asked;
  return plan #>> '{0,Plan,Plan Rows}';
end
$$;
comment on function recruitment.estimated_prospects(tsquery) is
  'About how many prospects of all organizations match a query, as the planner would say.';
revoke execute on function recruitment.estimated_prospects(tsquery) from public;

-- Chooses the filters that are looked up as words of the search column, beside a text. To read the index of a word takes a hundredth of what it takes
-- to look at as many prospects, and is worth it where it skips enough of those that match the text: hardly ever for a brand that has nearly all
-- prospects.
create or replace function recruitment.words_to_look_up(words text[], asked tsquery) returns text[]
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(array_agg(w.word), '{}')
  from unnest(words_to_look_up.words) as w (word)
  cross join lateral (select recruitment.estimated_prospects(quote_literal(w.word)::tsquery) as rows) as has_word
  cross join (select recruitment.estimated_prospects(words_to_look_up.asked) as rows) as has_text
  cross join (select greatest(c.reltuples, 1)::numeric as rows from pg_class c where c.oid = 'recruitment.prospect'::regclass) as every
  where has_text.rows * greatest(0, 1 - has_word.rows / every.rows) * 100 > least(has_word.rows, has_text.rows * 2000)
$$;
comment on function recruitment.words_to_look_up(text[], tsquery) is
  'Of the words that stand for filters, those worth looking up in the index of the search column beside a search text.';
revoke execute on function recruitment.words_to_look_up(text[], tsquery) from public;

-- A page of the prospects that `find_prospects` finds, and how many there are on all pages, in one look: `also` has all filters, those that are
-- among the words too. `query` may be null: then it goes by the words alone. Where many match, the page is looked for among the first prospects
-- of the brand, where it is expected to end, and the count collects nothing; should the page end later, all that match are collected.
create or replace function recruitment.prospect_page(words text[], query text, also jsonb, beyond text, ascending boolean, most integer)
returns table (count bigint, ids text[])
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set work_mem = '32MB'
as $$
declare
  many constant integer := 5000;
  -- Values: a condition would read the setting once more for each row.
  organization constant text := current_setting('rail.organization_id', true);
  asked tsquery := recruitment.search_query(query);
  looked_up text[] := words;
  every tsquery;
  word text;
  conditions text;
  matching text;
  expected numeric;
  before text := case when ascending then '>' else '<' end;
  direction text := case when ascending then 'asc' else 'desc' end;
begin
  if numnode(asked) = 0 then
    return query select 0::bigint, '{}'::text[];
    return;
  end if;
  if asked is not null then
    looked_up := recruitment.words_to_look_up(words, asked);
  end if;
  every := asked;
  foreach word in array words loop
    every := case when every is null then quote_literal(word)::tsquery else quote_literal(word)::tsquery && every end;
    if word = any(looked_up) then
      asked := case when asked is null then quote_literal(word)::tsquery else quote_literal(word)::tsquery && asked end;
    end if;
  end loop;
  select string_agg(' and ' || c.condition, '') into conditions
  from (
    values
      ('brand_id', 'brand', 'p.brand_id = $2 ->> ''brand_id'''),
      ('stage', 'stage', 'p.stage = $2 ->> ''stage'''),
      ('channel', 'channel', 'p.channel = $2 ->> ''channel'''),
      ('source', 'source', 'p.source = $2 ->> ''source'''),
      ('country_code', 'country', 'p.country_code = $2 ->> ''country_code'''),
      ('language_code', 'language', 'p.language_code = $2 ->> ''language_code'''),
      ('saved', 'saved', 'p.saved = ($2 ->> ''saved'')::boolean'),
      ('hidden', 'hidden', 'p.hidden = ($2 ->> ''hidden'')::boolean'),
      ('has_email', 'email', '(p.email_status in (''found'', ''verified'')) = ($2 ->> ''has_email'')::boolean'),
      ('min_followers', null, 'p.followers >= ($2 ->> ''min_followers'')::bigint'),
      ('max_followers', null, 'p.followers <= ($2 ->> ''max_followers'')::bigint'),
      ('assignee_member_id', null, case also ->> 'assignee_member_id'
        when 'none' then 'p.assignee_member_id is null' else 'p.assignee_member_id = $2 ->> ''assignee_member_id''' end),
      ('do_not_contact', null, '(p.do_not_contact_reason is not null) = ($2 ->> ''do_not_contact'')::boolean'),
      ('unsubscribed', null, '(p.unsubscribed_at is not null) = ($2 ->> ''unsubscribed'')::boolean'),
      ('invited', null, '(p.invited_at is not null) = ($2 ->> ''invited'')::boolean'),
      ('signed_up', null, '(p.signed_up_at is not null) = ($2 ->> ''signed_up'')::boolean'),
      ('search_id', null, 'p.source_run_id = $2 ->> ''search_id'''),
      ('scan_id', null, 'p.source_run_id = $2 ->> ''scan_id'''),
      ('created_after', null, 'p.created_at >= ($2 ->> ''created_after'')::timestamptz'),
      ('created_before', null, 'p.created_at < ($2 ->> ''created_before'')::timestamptz'),
      ('list_id', null, 'p.id in (select x.prospect_id from recruitment.list_prospect x '
        'where x.organization_id = p.organization_id and x.list_id = $2 ->> ''list_id'')')
  ) as c (name, word, condition)
  where also ? c.name and not coalesce(c.word || '=' || (also ->> c.name) = any(looked_up), false);
  expected := recruitment.estimated_prospects(every);
  if expected > many then
    -- In a column, the text is compared in the order of the ids, and the page ends it: as a condition, all that match would be found once more.
    execute format(
      'select array('
      'select s.id from ('
      'select p.id, p.search @@ $1%1$s as matches '
      'from recruitment.prospect p '
      'where p.organization_id = $6 and p.brand_id = $2 ->> ''brand_id'' and ($3 is null or p.id %2$s $3) '
      'order by p.id %3$s limit $5) as s '
      'where s.matches order by s.id %3$s limit $4)',
      conditions, before, direction
    )
    into ids
    using asked, also, beyond, most, least(ceil(4 * most * recruitment.estimated_prospects(
      quote_literal('brand=' || (also ->> 'brand_id'))::tsquery) / expected), 10000)::bigint, organization;
  end if;
  matching := format('from recruitment.prospect p where p.search @@ $1 and p.organization_id = $3%s', conditions);
  if cardinality(ids) = most then
    execute 'select count(*) ' || matching into count using asked, also, organization;
  else
    execute format(
      'select count(*), array(select i.id from unnest(array_agg(p.id) filter (where $4 is null or p.id %1$s $4)) as i (id) '
      'order by i.id collate "C" %2$s limit $5) %3$s',
      before, direction, matching
    )
    into count, ids
    using asked, also, organization, beyond, most;
  end if;
  return next;
end
$$;
comment on function recruitment.prospect_page(text[], text, jsonb, text, boolean, integer) is
  'The first ids beyond a cursor of the prospects whose search column has these words and matches a search text, and how many these are.';
revoke execute on function recruitment.prospect_page(text[], text, jsonb, text, boolean, integer) from public;
grant execute on function recruitment.prospect_page(text[], text, jsonb, text, boolean, integer) to rail_api;
