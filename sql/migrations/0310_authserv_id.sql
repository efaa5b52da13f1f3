alter table recruitment.inbox add column authserv_id text;
comment on column recruitment.inbox.authserv_id is 'The name that its mail server signs Authentication-Results with. Null: known for large providers alone.';
