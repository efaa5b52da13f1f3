-- Runs outside a transaction, one statement after the other: tables in use are indexed.
-- What leads to the rows of all organizations by an id that views show tells a login, by `explain analyze`, how many rows others have of it.
create index concurrently if not exists endpoint_receiving_of on webhooks.endpoint (organization_id, program_id) where deleted_at is null and status = 'enabled';

drop index concurrently if exists webhooks.endpoint_receiving;

create index concurrently if not exists prospect_uncontacted_of on recruitment.prospect (organization_id, brand_id, created_at)
  where stage = 'found' and sent = 0;

drop index concurrently if exists recruitment.prospect_uncontacted;
