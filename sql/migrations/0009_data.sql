-- Schema data: views for those who query Postgres directly (sql/live/data).

create schema data;
comment on schema data is 'Documented views of each organization''s own data, for data teams: the only schema that their logins reach.';
