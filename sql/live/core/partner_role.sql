-- The role of the portal. A request of a partner runs as `rail_partner`, a member of `rail_api` with restrictive policies on top: of tables that belong
-- to partners it sees the rows of one, of those listed here the rows of the organization, and of all others none. A statement that forgets
-- `where partner_id = …` shows nothing of other partners.

-- Tables without a partner whose rows a partner's request may read: what all partners of a program share, and what its own changes go through.
create or replace function core.shared_with_partners() returns setof text
language sql immutable
return unnest(array[
  'core.organization', 'core.deleted_object', 'core.idempotency_key', 'program.program', 'program.partner_group', 'program.rule',
  'program.fold', 'webhooks.pending_event'
]);

-- Tables whose rows belong to something of the partner's: the function that says so, in the schema of the table, and the column that it is asked with.
create or replace function core.within_partners() returns table (name text, condition text)
language sql immutable
as $$
  values
    ('program.payout_commission', 'program.sees_payout(payout_id)'),
    ('program.refund', 'program.sees_sale(sale_id)'),
    ('program.tally', 'program.sees_subject(subject_id)'),
    ('program.tally_note', 'program.sees_subject(subject_id)'),
    ('webhooks.attempt', 'webhooks.sees_delivery(delivery_id)'),
    ('webhooks.delivery', 'webhooks.sees_endpoint(endpoint_id)')
$$;

-- The policies of a table for `rail_partner`. The name of a policy has the hash of its condition, so that one that is out of date is found by its name:
-- Postgres reads an expression under a lock of the table, for which /readyz cannot wait. Rows may be added of tables that it cannot read: events, notes of reports, entries of the audit log.
create or replace function core.partner_policies(relation oid, name text) returns table (command text, condition text, policy name)
language sql stable
as $$
  with own as (
    select case
      when name = 'program.partner' then 'id = current_setting(''rail.partner_id'', true)'
      when exists (select from pg_attribute a where a.attrelid = relation and a.attname = 'partner_id' and not a.attisdropped)
        then 'partner_id = current_setting(''rail.partner_id'', true)'
    end as condition,
    (select w.condition from core.within_partners() w where w.name = partner_policies.name) as within
  )
  select a.command, a.condition, format('partner_%s_%s', a.command, left(md5(a.condition), 8))::name
  from (
    select c.command, case when name in (select core.shared_with_partners()) then 'true' else coalesce(o.condition, o.within, 'false') end
    from own o
    cross join unnest(array['select', 'update', 'delete']) as c (command)

    union all
    select 'insert', format('(%s) is not false', o.condition)
    from own o
    where o.condition is not null
  ) as a (command, condition)
$$;

-- Opens the transaction of a partner: see core.open_request.
create or replace function core.open_partner_request(organization text, partner text, most_ms integer default null, idempotency_key text default null)
returns table (now timestamptz, in_flight boolean, fingerprint bytea, status integer, reply bytea)
language plpgsql volatile
as $$
begin
  perform set_config('rail.partner_id', partner, true);
  return query select r.now, r.in_flight, r.fingerprint, r.status, r.reply from core.open_request(organization, idempotency_key, most_ms) r;
  perform set_config('role', 'rail_partner', true);
end
$$;
