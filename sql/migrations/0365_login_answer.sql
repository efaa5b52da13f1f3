alter table recruitment.inbox_reader add column login_answer text;
comment on column recruitment.inbox_reader.login_answer is 'What the IMAP server said to the last login, where it failed, without the login itself.';
comment on column recruitment.inbox_reader.refused is 'Logins that the IMAP server refused for certain, in a row: the third disconnects the inbox.';
