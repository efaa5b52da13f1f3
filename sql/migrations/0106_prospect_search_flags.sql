-- What is saved, hidden or can be written to stands among the words too, so that a search with these filters is one look-up as well.
drop index recruitment.prospect_by_search;
alter table recruitment.prospect drop column search;
alter table recruitment.prospect add column search tsvector not null generated always as (
  array_to_tsvector(array['brand=' || brand_id, 'stage=' || stage, 'channel=' || channel, 'source=' || source])
    || array_to_tsvector(array['country=' || coalesce(country_code, ''), 'language=' || coalesce(language_code, '')])
    || array_to_tsvector(array[
      'saved=' || case when saved then 'true' else 'false' end,
      'hidden=' || case when hidden then 'true' else 'false' end,
      'email=' || case when email_status in ('found', 'verified') then 'true' else 'false' end
    ])
    || to_tsvector(
      'simple'::regconfig,
      regexp_replace(key, '[._-]+', ' ', 'g') || ' ' || key || ' ' || coalesce(name, '') || ' ' || coalesce(description, '')
    )
) stored;
comment on column recruitment.prospect.search is
  'The words of its texts, and its brand and the fields that lists filter by as words with an `=`, so that text, tenant and filters are one look-up.';
create index prospect_by_search on recruitment.prospect using gin (search) with (gin_pending_list_limit = 1024);
