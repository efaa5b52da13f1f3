-- What re-encryption goes by: a primary key of (organization_id, id), whose id is the context that the value is sealed for.
alter table recruitment.hmac_key add column id text collate "C" not null generated always as (organization_id) stored;
alter table recruitment.hmac_key drop constraint hmac_key_pkey, add primary key (organization_id, id);
comment on column recruitment.hmac_key.id is 'The organization: each has one key.';
