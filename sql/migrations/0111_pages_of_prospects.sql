-- A page belongs to who it was fetched for: it is erased with them.
alter table recruitment.page add column channel text;
alter table recruitment.page add column key text collate "C";
comment on column recruitment.page.key is 'The prospect that it was fetched for, in its channel.';
create index page_by_prospect on recruitment.page (organization_id, channel, key);
