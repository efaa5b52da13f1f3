-- No click is refused for the page that it names: what cannot be used of it is left out.
alter table program.click alter column landing_url drop not null;
comment on column program.click.landing_url is 'The page where the visitor arrived. Null: not known.';
