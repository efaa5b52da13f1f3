-- Authenticates a key, and grants how many of the requests that wait in one process may go on in this second. It commits by itself, so that requests
-- that fail count too, and nobody waits for another request's transaction. A key with a high limit is granted more than wait, a sixteenth of what is
-- left of the second: the process lets them through without asking. All that is granted of one second is never more than the limit.
create or replace function core.authenticate(key_sha256 bytea, waiting integer)
returns table (
  organization_id text,
  api_key_id text,
  mode text,
  scopes text[],
  signature_required boolean,
  revoked boolean,
  expired boolean,
  ip_ranges text[],
  rate_limit integer,
  granted integer,
  used integer,
  second bigint,
  left_ms double precision
)
language sql volatile
as $$
  with presented as (
    select
      k.organization_id, k.id, k.mode, k.scopes, k.signature_required, k.revoked_at is not null as revoked,
      coalesce(k.expires_at <= clock_timestamp(), false) as expired, k.ip_ranges, k.rate_limit, k.last_used_at
    from core.api_key k
    where k.secret_sha256 = key_sha256

    union all
    -- The key before it was rotated.
    select
      k.organization_id, k.id, k.mode, k.scopes, k.signature_required, k.revoked_at is not null,
      coalesce(least(k.previous_secret_expires_at, k.expires_at) <= clock_timestamp(), false), k.ip_ranges, k.rate_limit, k.last_used_at
    from core.api_key k
    where k.previous_secret_sha256 = key_sha256
  ),
  -- The clock is read once: between two looks at it a second may begin.
  clock as materialized (
    select extract(epoch from clock_timestamp())::double precision as now
  ),
  -- A row for each second, so that nobody walks past the versions of earlier ones. What is beyond the limit is refused uncounted.
  counted as (
    insert into core.rate_limit_window as w (second, api_key_id, granted, used)
    select floor(c.now)::bigint, p.id, g.granted, g.granted
    from presented p
    cross join clock c
    cross join lateral (select least(p.rate_limit, greatest(waiting, p.rate_limit / 16)) as granted) g
    where not p.revoked and not p.expired
    on conflict on constraint rate_limit_window_pkey do update set (granted, used) = (
      select g.granted, w.used + g.granted
      from presented p
      cross join lateral (select least(p.rate_limit - w.used, greatest(waiting, (p.rate_limit - w.used) / 16)) as granted) g
    )
    where w.used < (select p.rate_limit from presented p)
    returning w.granted, w.used
  ),
  touched as (
    update core.api_key k
    set last_used_at = now()
    from presented p
    where k.organization_id = p.organization_id
      and k.id = p.id
      and not p.revoked
      and not p.expired
      and (p.last_used_at is null or p.last_used_at < now() - interval '1 minute')
  )
  select
    p.organization_id, p.id, p.mode, p.scopes, p.signature_required, p.revoked, p.expired, p.ip_ranges, p.rate_limit, coalesce(n.granted, 0),
    coalesce(n.used, p.rate_limit), floor(c.now)::bigint, (1 - (c.now - floor(c.now))) * 1000
  from presented p
  cross join clock c
  left join counted n on true
$$;

-- Gives a key of the organization of the request a new secret. The one before is valid beside it until `overlap_ends`, one before that no longer.
create or replace function core.rotate_key(key_id text, new_sha256 bytea, overlap_ends timestamptz) returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  update core.api_key k
  set previous_secret_sha256 = k.secret_sha256, previous_secret_expires_at = overlap_ends, secret_sha256 = new_sha256, updated_at = now()
  where k.organization_id = current_setting('rail.organization_id')
    and k.id = key_id
$$;
revoke execute on function core.rotate_key(text, bytea, timestamptz) from public;

-- Forgets what was counted in a time that is over, also for whoever read the clock and then waited.
create or replace function core.forget_past() returns void
language sql volatile
as $$
  delete from core.rate_limit_window w where w.second < floor(extract(epoch from clock_timestamp()))::bigint - 60;
$$;

-- Opens a tenant's transaction: from here on the session is the API's role and sees one organization. With an idempotency key it
-- takes the key's lock (a dying process lets go of it) and reads the stored reply: in a statement of its own, so that it sees
-- what the lock's last holder committed. Reading a page out of order costs about what reading the next one does, on every disk of
-- today; Postgres believes four times that, and would rather read a whole table than count by an index. `most_ms`: a statement that takes
-- longer is given up, and sooner where it waits for a lock, so that the request can still say so.
create or replace function core.open_request(organization text, idempotency_key text, most_ms integer default null)
returns table (now timestamptz, in_flight boolean, fingerprint bytea, status integer, reply bytea)
language plpgsql volatile
as $$
begin
  perform set_config('rail.organization_id', organization, true), set_config('role', 'rail_api', true),
    set_config('random_page_cost', '1.1', true);
  if most_ms is not null then
    perform set_config('statement_timeout', most_ms::text, true), set_config('lock_timeout', (most_ms * 4 / 5)::text, true);
  end if;
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
