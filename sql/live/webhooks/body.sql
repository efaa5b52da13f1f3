-- Whether a type of endpoint is a team chat's.
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

-- The body that an endpoint receives of an event; null where it receives nothing of it.
create or replace function webhooks.body_for(type text, partner_id text, body text, postback_body text, chat_text text) returns text
language sql immutable
return case
  when webhooks.is_chat(type) then webhooks.chat_body(type, chat_text)
  when partner_id is null then body
  else postback_body
end;
