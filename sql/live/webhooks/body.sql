-- Returns whether a type of endpoint is a team chat's.
create or replace function webhooks.is_chat(type text) returns boolean
language sql immutable
return type in ('slack', 'discord', 'teams');

-- A line of text as the incoming webhook of a team chat takes it. Nobody is mentioned by it.
create or replace function webhooks.chat_body(type text, line text) returns text
language sql immutable
return case
  when line is null then null
  when type = 'slack' then jsonb_build_object(
    'text', line,
    'blocks', jsonb_build_array(
      jsonb_build_object('type', 'section', 'text', jsonb_build_object('type', 'mrkdwn', 'text', line))
    )
  )
  when type = 'discord' then jsonb_build_object(
    'content', left(line, 2000),
    'allowed_mentions', jsonb_build_object('parse', '[]'::jsonb)
  )
  when type = 'teams' then jsonb_build_object(
    'type', 'message',
    'attachments', jsonb_build_array(
      jsonb_build_object(
        'contentType', 'application/vnd.microsoft.card.adaptive',
        'content', jsonb_build_object(
          '$schema', 'http://adaptivecards.io/schemas/adaptive-card.json',
          'type', 'AdaptiveCard',
          'version', '1.4',
          'body', jsonb_build_array(jsonb_build_object('type', 'TextBlock', 'text', line, 'wrap', true))
        )
      )
    )
  )
end::text;

-- A body with some fields of `data` replaced: the same text each time, with its keys in their order.
create or replace function webhooks.with_fields(body text, replaced json) returns text
language sql immutable
return (
  select json_object_agg(
    envelope.key,
    case envelope.key
      when 'data' then (
        select json_object_agg(field.key, coalesce(replaced -> field.key, field.value) order by field.nth)
        from json_each(envelope.value) with ordinality as field (key, value, nth)
      )
      else envelope.value
    end
    order by envelope.nth
  )::text
  from json_each(body::json) with ordinality as envelope (key, value, nth)
);

-- The body that an endpoint receives of an event; null where it receives nothing of it. A line for a team chat holds no personal data.
create or replace function webhooks.body_for(endpoint webhooks.endpoint, event webhooks.event) returns text
language sql stable
return case
  when webhooks.is_chat(endpoint.type) then webhooks.chat_body(endpoint.type, event.chat_text)
  when not endpoint.personal_data and event.without_personal is not null
    then webhooks.with_fields(case when endpoint.partner_id is null then event.body else event.postback_body end, event.without_personal)
  when endpoint.partner_id is null then event.body
  else event.postback_body
end;
