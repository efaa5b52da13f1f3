-- Writes a transaction's events, in the order given. `events` is an array of
-- {id, program_id, partner_id, type, livemode, body, postback_body, chat_text, without_personal, request_id, traceparent}, the last but one where it is another
-- than the transaction's; positions are taken here, which is after every
-- row lock of the transaction, because the events are written just before it commits. The lock says from where on it draws them, and the
-- transaction has an id by then (complete_position.sql).
create or replace function webhooks.write_events(organization text, request text, at timestamptz, events json, delivery_prefix text) returns void
language sql volatile
as $$
  select pg_advisory_xact_lock_shared(webhooks.writer_lock_key(organization, webhooks.last_position())) from pg_current_xact_id();

  with emitted as (
    select
      e.id, e.program_id, e.partner_id, e.type, e.livemode, e.body, e.postback_body, e.chat_text, e.without_personal,
      coalesce(e.request_id, request) as request_id, e.traceparent, e.nth
    from rows from (
      json_to_recordset(events) as (
        id text, program_id text, partner_id text, type text, livemode boolean, body text, postback_body text, chat_text text,
        without_personal json, request_id text, traceparent text
      )
    ) with ordinality as e (id, program_id, partner_id, type, livemode, body, postback_body, chat_text, without_personal, request_id, traceparent, nth)
  ),
  numbered as materialized (
    select ordered.*, nextval('webhooks.event_position') as position
    from (select * from emitted order by nth) as ordered
  ),
  logged as (
    insert into webhooks.event (
      organization_id, id, position, program_id, partner_id, type, livemode, body, postback_body, chat_text, without_personal, request_id, traceparent,
      created_at
    )
    select
      organization, n.id, n.position, n.program_id, n.partner_id, n.type, n.livemode, n.body, n.postback_body, n.chat_text, n.without_personal, n.request_id, n.traceparent,
      at
    from numbered n
  )
  insert into webhooks.pending_event (position, organization_id, event_id, program_id, partner_id, type, for_partner, livemode, delivery_prefix)
  select n.position, organization, n.id, n.program_id, n.partner_id, n.type, n.postback_body is not null, n.livemode, delivery_prefix
  from numbered n
$$;
