-- The reader of schema data. Both functions run as the service's user, so current_user is that user in them; session_user is who logged in, which
-- nothing but a superuser changes. A setting counts for the service's own login alone: anybody can SET one.

-- The organization whose rows the views show; null shows none. A login that has ended gets an error: no rows would be taken for what there is.
create or replace function data.organization_id() returns text
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  login core.data_login;
begin
  if session_user = current_user then
    return nullif(current_setting('rail.organization_id', true), '');
  end if;
  select l.* into login from core.data_login l where l.role_name = session_user::text;
  if login.revoked_at is not null or login.expires_at <= statement_timestamp() then
    raise exception using
      errcode = 'invalid_authorization_specification',
      message = format('This data login %s.', case when login.revoked_at is not null then 'was revoked' else 'has expired' end),
      hint = 'Ask the operator of the service for a new one.';
  end if;
  return login.organization_id;
end
$$;
comment on function data.organization_id() is 'The organization whose rows you see.';

create or replace function data.sees_personal() returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select case
    when session_user = current_user then coalesce(current_setting('rail.sees_personal', true), '') = 'on'
    else exists (select from core.data_login l where l.role_name = session_user::text and l.sees_personal)
  end
$$;
comment on function data.sees_personal() is 'Whether columns with emails, names and other personal data are shown to you; otherwise they are null.';

-- Visitors come by URLs with their email, and people write emails into names and reasons, some as `ada [at] example.com` or `"a b"@example.com`. Most
-- texts have none: they are not searched further. `withoutEmails` in src/core is the same, and says what each pattern is for. Postgres puts the
-- function into the statement that calls it only while it holds no query of its own.
create or replace function data.without_emails(url text) returns text
language sql immutable parallel safe
return case
  when url ~* '[@＠﹫]|%(25)*40|%(25)*EF%(25)*B(C%(25)*A0|9%(25)*AB)|#0{0,8}64;|#x0{0,8}40;|&commat;|[\s[({<_]at[\s\])}>_]' then
    regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(url,
      '[＠﹫]|%(25)*EF%(25)*B(C%(25)*A0|9%(25)*AB)|(&|(?<=[a-z0-9]))#(0{0,8}64|x0{0,8}40);(?=[a-z0-9])|&commat;|\s{0,3}[[({<]\s{0,3}at\s{0,3}[\])}>]\s{0,3}', '@', 'gi'),
      '_at_(?=[^\s/?&=#:;,<>()"@._]{1,63}[.](?!(html?|php|aspx?|jpe?g|png|gif|webp|svg|pdf|css|js)(?![a-z0-9.-]))[a-z])', '@', 'gi'),
      '(?<=[a-z0-9])\s{1,3}AT\s{1,3}(?=[^\s/?&=#:;,<>()"@.]{1,63}[.][a-z])', '@', 'g'),
      '\s{1,3}at\s{1,3}(?!(?:the|an?|this|that)\s)([^\s/?&=#:;,<>()"@.]{1,63})\s{1,3}dot\s{1,3}(?=[a-z])', '@\1.', 'gi'),
      '(@\s{0,3}[^\s/?&=#:;,<>()"@.]{1,63})[ \t]{1,3}[.][ \t]{1,3}(?=[^\s/?&=#:;,<>()"@.])', '\1.', 'g'),
      '\s{0,3}@\s{1,3}(?=[^\s/?&=#:;,<>()"@.]{1,63}[.][^\s\d/?&=#:;,<>()"@.])', '@', 'g'),
      '\s{1,3}@(?=[^\s/?&=#:;,<>()"@.]{1,63}[.][a-z])', '@', 'gi'),
      '"[^"\n]{1,64}"@', 'quoted@', 'g'),
      '[^\s/?&=#:;,<>()"]+(@|%(25)*40)[^\s/?&=#:;,<>()"]+', 'hidden', 'g')
  else url
end;
comment on function data.without_emails(text) is 'A text with each email address in it replaced by "hidden".';
