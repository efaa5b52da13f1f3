-- Every list is read by an index in its own order, whatever it is filtered by, and is counted without a look at the table. A filter
-- that leaves few rows has an index that begins with it, and carries the program along: (organization_id, field, id). One that leaves
-- many (the time of creation, a kind) is judged within the program's own index, which carries the field along.

-- Programs are few in an organization, but nothing says so.
create index program_by_organization on program.program (organization_id, id) include (created_at, status);

create index partner_group_by_program on program.partner_group (organization_id, program_id, id) include (created_at);

drop index program.tag_by_program;
create index tag_by_program on program.tag (organization_id, program_id, id) include (created_at);

drop index program.partner_by_program;
create index partner_by_program on program.partner (organization_id, program_id, id) include (created_at) where deleted_at is null;
drop index program.partner_by_group;
create index partner_by_group on program.partner (organization_id, group_id, id) include (program_id) where deleted_at is null;

drop index program.application_by_program;
create index application_by_program on program.application (organization_id, program_id, id) include (created_at);
create index application_by_partner on program.application (organization_id, partner_id, id) include (program_id);
create index application_by_group on program.application (organization_id, group_id, id) include (program_id);

drop index program.link_by_program;
create index link_by_program on program.link (organization_id, program_id, id) include (created_at) where deleted_at is null;
drop index program.link_by_partner;
create index link_by_partner on program.link (organization_id, partner_id, id) include (program_id) where deleted_at is null;

drop index program.coupon_by_program;
create index coupon_by_program on program.coupon (organization_id, program_id, id) include (created_at) where deleted_at is null;
drop index program.coupon_by_partner;
create index coupon_by_partner on program.coupon (organization_id, partner_id, id) include (program_id) where deleted_at is null;
create index coupon_by_group on program.coupon (organization_id, group_id, id) include (program_id) where deleted_at is null;

drop index program.click_by_program;
create index click_by_program on program.click (organization_id, program_id, id) include (created_at);
drop index program.click_by_link;
create index click_by_link on program.click (organization_id, link_id, id) include (program_id) where link_id is not null;
drop index program.click_by_referral;
create index click_by_referral on program.click (organization_id, referral_id, id) include (program_id) where referral_id is not null;

drop index program.referral_by_program;
create index referral_by_program on program.referral (organization_id, program_id, id) include (created_at) where deleted_at is null;
drop index program.referral_by_link;
create index referral_by_link on program.referral (organization_id, link_id, id) include (program_id) where deleted_at is null;

drop index program.customer_by_program;
create index customer_by_program on program.customer (organization_id, program_id, id) include (created_at);
drop index program.customer_by_link;
create index customer_by_link on program.customer (organization_id, link_id, id) include (program_id) where link_id is not null;
drop index program.customer_by_coupon;
create index customer_by_coupon on program.customer (organization_id, coupon_id, id) include (program_id) where coupon_id is not null;

drop index program.rule_by_program;
create index rule_by_program on program.rule (organization_id, program_id, id) include (created_at) where deleted_at is null;
-- The active ones are read for each sale.
create index rule_by_status on program.rule (organization_id, program_id, status, id) where deleted_at is null;

drop index program.sale_by_program;
create index sale_by_program on program.sale (organization_id, program_id, id) include (created_at, currency) where deleted_at is null;
create index sale_by_link on program.sale (organization_id, link_id, id) include (program_id) where deleted_at is null and link_id is not null;
create index sale_by_referral on program.sale (organization_id, referral_id, id) include (program_id)
  where deleted_at is null and referral_id is not null;
create index sale_by_coupon on program.sale (organization_id, coupon_id, id) include (program_id)
  where deleted_at is null and coupon_id is not null;

drop index program.commission_by_program;
create index commission_by_program on program.commission (organization_id, program_id, id) include (created_at, kind)
  where deleted_at is null;
drop index program.commission_by_maturity;
create index commission_by_maturity on program.commission (organization_id, program_id, mature_at, id) include (created_at, status)
  where deleted_at is null;
create index commission_by_applied_rule on program.commission (organization_id, rule_id, id) include (program_id)
  where deleted_at is null and rule_id is not null;
create index commission_by_payout on program.commission (organization_id, payout_id, id) include (program_id)
  where deleted_at is null and payout_id is not null;

drop index program.risk_flag_by_program;
create index risk_flag_by_program on program.risk_flag (organization_id, program_id, id) include (created_at, kind, severity);
drop index program.risk_flag_by_partner;
create index risk_flag_by_partner on program.risk_flag (organization_id, partner_id, id) include (program_id);

drop index webhooks.event_by_program;
create index event_by_program on webhooks.event (organization_id, program_id, id) include (created_at);
drop index webhooks.event_by_type;
create index event_by_type on webhooks.event (organization_id, program_id, type, id);
drop index webhooks.event_by_partner;
create index event_by_partner on webhooks.event (organization_id, program_id, partner_id, id) where partner_id is not null;

drop index webhooks.endpoint_by_program;
create index endpoint_by_program on webhooks.endpoint (organization_id, program_id, id) include (created_at, status, partner_id)
  where deleted_at is null;

-- Not the status: it changes with each delivery, which then would touch every index.
drop index webhooks.delivery_by_program;
create index delivery_by_program on webhooks.delivery (organization_id, program_id, id) include (created_at, event_type);
drop index webhooks.delivery_by_endpoint;
create index delivery_by_endpoint on webhooks.delivery (organization_id, endpoint_id, id) include (program_id, created_at, event_type);

-- What an organization, a program, a partner, a link, a coupon or a group has, without counting it: each write notes what it changes,
-- and a job folds the notes into one row a subject. Notes are inserted alone, so that no write waits for another one; they commit, or
-- vanish, with what they are of.
create table program.tally (
  organization_id text collate "C" not null,
  subject_id text collate "C" not null,
  noun text not null,
  kind text not null,
  rows bigint not null,
  amount_minor bigint not null,
  primary key (organization_id, subject_id, noun, kind)
) with (fillfactor = 50);
comment on table program.tally is 'How many rows of a noun belong to a subject and what they come to, together with the notes in tally_change.';
comment on column program.tally.kind is 'What splits them: a partner''s status, the currency of money, whether it is paid; else nothing.';

create table program.tally_change (
  organization_id text collate "C" not null,
  subject_id text collate "C" not null,
  noun text not null,
  kind text not null,
  rows bigint not null,
  amount_minor bigint not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
comment on table program.tally_change is 'What was written since the last fold. Rows live for a minute.';
create index tally_change_by_subject on program.tally_change (organization_id, subject_id, noun);

create table program.tallied (
  noun text primary key,
  counted text not null
);
comment on table program.tallied is 'The tables that are tallied: what their rows r come to, as SQL, by which the audit recounts.';

call core.protect_tenant_table('program.tally');
call core.protect_tenant_table('program.tally_change');

-- Tallies a table from now on, what it holds included. `subjects`: the columns that say whose a row is. `kind`, `alive`,
-- `amount_minor`: SQL over a row `r`. `watched`: the columns that all these go by, as far as they change.
create procedure program.keep_tally(noun text, subjects text[], kind text, alive text, amount_minor text, watched text[])
language plpgsql
as $$
declare
  counted constant text := format(
    'select r.organization_id, s.subject_id, %s as kind, %%s as rows, %%s(%s)::bigint as amount_minor '
    'from %%s as r cross join lateral (values %s) as s (subject_id) where s.subject_id is not null and %s',
    kind, amount_minor, (select string_agg(format('(r.%I)', name), ', ') from unnest(subjects) as name), alive
  );
  -- What rows come to when they are added, and when they are taken away.
  gained constant text := format(counted, '1', '', '%s');
  lost constant text := format(counted, '-1', '-', '%s');
  note constant text := format(
    'insert into program.tally_change (organization_id, subject_id, noun, kind, rows, amount_minor) '
    'select c.organization_id, c.subject_id, %L, c.kind, sum(c.rows), sum(c.amount_minor) from (%%s) as c '
    'group by 1, 2, 4 having sum(c.rows) <> 0 or sum(c.amount_minor) <> 0',
    noun
  );
  whole_table constant text := format(gained, format('program.%I', noun));
begin
  insert into program.tallied values (noun, whole_table);
  execute format(
    'create function program.tally_%s() returns trigger language plpgsql as $body$ begin '
    'if tg_op = ''INSERT'' then %s; elsif tg_op = ''DELETE'' then %s; else %s; end if; return null; end $body$',
    noun,
    format(note, format(gained, 'written')),
    format(note, format(lost, 'written')),
    format(note, format(gained, '(select new.*)') || ' union all ' || format(lost, '(select old.*)'))
  );
  execute format(
    'create trigger tally_inserted after insert on program.%I referencing new table as written '
    'for each statement execute function program.tally_%s()',
    noun, noun
  );
  execute format(
    'create trigger tally_deleted after delete on program.%I referencing old table as written '
    'for each statement execute function program.tally_%s()',
    noun, noun
  );
  if watched <> '{}' then
    execute format(
      'create trigger tally_updated after update on program.%I for each row when ((%s) is distinct from (%s)) '
      'execute function program.tally_%s()',
      noun,
      (select string_agg(format('old.%I', name), ', ') from unnest(watched) as name),
      (select string_agg(format('new.%I', name), ', ') from unnest(watched) as name),
      noun
    );
  end if;
  execute format(note, whole_table);
end
$$;

call program.keep_tally('program', '{organization_id}', '''''', 'true', '0', '{}');
call program.keep_tally('partner', '{program_id,group_id}', 'r.status', 'r.deleted_at is null', '0', '{group_id,status,deleted_at}');
call program.keep_tally('click', '{program_id,partner_id,link_id}', '''''', 'true', '0', '{}');
call program.keep_tally(
  'referral', '{program_id,partner_id,link_id}', '''''', 'r.deleted_at is null', '0', '{partner_id,link_id,deleted_at}'
);
call program.keep_tally(
  'customer', '{program_id,partner_id,link_id,coupon_id}', '''''', 'true', '0', '{partner_id,link_id,coupon_id}'
);
call program.keep_tally(
  'sale', '{program_id}', 'r.currency', 'r.deleted_at is null', 'r.amount_minor', '{currency,amount_minor,deleted_at}'
);
call program.keep_tally(
  'commission',
  '{program_id,partner_id}',
  'r.currency || case when r.status = ''paid'' then '' paid'' else '''' end',
  'r.deleted_at is null',
  'case when r.status in (''voided'', ''rejected'') then 0 else r.amount_minor end',
  '{partner_id,currency,amount_minor,status,deleted_at}'
);
call program.keep_tally('partner_group', '{program_id}', '''''', 'true', '0', '{}');
call program.keep_tally('tag', '{program_id}', '''''', 'true', '0', '{}');
call program.keep_tally('application', '{program_id}', '''''', 'true', '0', '{}');
call program.keep_tally('link', '{program_id}', '''''', 'r.deleted_at is null', '0', '{deleted_at}');
call program.keep_tally('coupon', '{program_id}', '''''', 'r.deleted_at is null', '0', '{deleted_at}');
call program.keep_tally('rule', '{program_id}', '''''', 'r.deleted_at is null', '0', '{deleted_at}');
call program.keep_tally('risk_flag', '{program_id}', '''''', 'true', '0', '{}');
