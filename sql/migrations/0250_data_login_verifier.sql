-- What Postgres stores of the password that a login was given: a login can set another one, which is undone by it.
alter table core.data_login add column verifier text;
