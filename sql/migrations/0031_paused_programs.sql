-- A click that is made while its program is paused earns no credit, also when it is attributed after the program is active again.
alter table program.click add column made_while_paused boolean not null default false;
comment on column program.click.made_while_paused is 'The program was paused when the visitor clicked: the click earns no credit.';
