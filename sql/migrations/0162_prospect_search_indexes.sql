-- Runs outside a transaction: the indexes of the words, which are built while others write, and one for lists by followers.

create index concurrently if not exists prospect_by_search on recruitment.prospect using gin (search) with (gin_pending_list_limit = 1024);

create index concurrently if not exists page_by_search on recruitment.page using gin (search);

create index concurrently if not exists prospect_by_followers on recruitment.prospect (organization_id, brand_id, followers)
include (id, stage, channel, source, saved, hidden, country_code, language_code, email_status)
where followers is not null;
