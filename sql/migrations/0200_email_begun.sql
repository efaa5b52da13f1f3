-- An email counts as tried before it is judged, and where it lies: a worker that is killed meanwhile leaves the count behind.

alter table recruitment.inbox_folder
  add column begun_uid bigint,
  add column tries integer not null default 0 constraint inbox_folder_tries_not_negative check (tries >= 0);
comment on column recruitment.inbox_folder.begun_uid is 'The email behind last_uid whose reading has begun. Null: none.';
comment on column recruitment.inbox_folder.tries is 'How often it has begun: less of it is fetched the second time, and after the third it is set aside.';
alter table recruitment.inbox_reader drop column stuck_folder, drop column stuck_uid, drop column stuck_tries;
