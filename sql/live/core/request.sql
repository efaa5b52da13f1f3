-- Who asks, and how often in this second: the first round trip of every request. It commits by itself, so that requests that
-- fail count too, and nobody waits for another request's transaction.
create or replace function core.authenticate(key_sha256 bytea)
returns table (
  organization_id text,
  api_key_id text,
  mode text,
  scopes text[],
  signature_required boolean,
  revoked boolean,
  rate_limit integer,
  used integer,
  second bigint
)
language sql volatile
as $$
  with presented as (
    select k.organization_id, k.id, k.mode, k.scopes, k.signature_required, k.revoked_at is not null as revoked, k.rate_limit, k.last_used_at
    from core.api_key k
    where k.secret_sha256 = key_sha256
  ),
  counted as (
    insert into core.rate_limit_window as w (api_key_id, second, used)
    select p.id, floor(extract(epoch from clock_timestamp()))::bigint, 1
    from presented p
    where not p.revoked
    -- The clock is read once: between two looks at it a second may begin, to which the count of the one before would be carried over.
    on conflict (api_key_id) do update set
      used = case when w.second >= excluded.second then w.used + 1 else 1 end,
      second = greatest(w.second, excluded.second)
    returning w.used, w.second
  ),
  touched as (
    update core.api_key k
    set last_used_at = now()
    from presented p
    where k.organization_id = p.organization_id
      and k.id = p.id
      and not p.revoked
      and (p.last_used_at is null or p.last_used_at < now() - interval '1 minute')
  )
  select p.organization_id, p.id, p.mode, p.scopes, p.signature_required, p.revoked, p.rate_limit, coalesce(c.used, 0), coalesce(c.second, 0)
  from presented p
  left join counted c on true
$$;

-- Opens a tenant's transaction: from here on the session is the API's role and sees one organization. With an idempotency key it
-- takes the key's lock (a dying process lets go of it) and reads the stored reply: in a statement of its own, so that it sees
-- what the lock's last holder committed. Reading a page out of order costs about what reading the next one does, on every disk of
-- today; Postgres believes four times that, and would rather read a whole table than count by an index.
create or replace function core.open_request(organization text, idempotency_key text)
returns table (now timestamptz, in_flight boolean, fingerprint bytea, status integer, reply bytea)
language plpgsql volatile
as $$
begin
  perform set_config('rail.organization_id', organization, true), set_config('role', 'rail_api', true),
    set_config('random_page_cost', '1.1', true);
  now := date_trunc('milliseconds', clock_timestamp());
  in_flight := false;
  if idempotency_key is not null then
    in_flight := not pg_try_advisory_xact_lock(hashtextextended(organization || ' ' || idempotency_key, 0));
    select k.fingerprint, k.status, k.reply
    into fingerprint, status, reply
    from core.idempotency_key k
    where k.organization_id = organization
      and k.key = idempotency_key
      and k.created_at > clock_timestamp() - interval '24 hours';
  end if;
  return next;
end
$$;
