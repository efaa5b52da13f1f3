-- How many prospects a brand has of each kind that lists filter by, without counting them: each write notes what it changes in
-- prospect_tally_change, and a job folds the notes into prospect_tally. Notes are inserted alone, so that no write waits for another one;
-- they commit, or vanish, with what they are of.
create table recruitment.prospect_tally (
  organization_id text collate "C" not null,
  brand_id text collate "C" not null,
  stage text not null,
  channel text not null,
  source text not null,
  country_code text not null,
  language_code text not null,
  saved boolean not null,
  hidden boolean not null,
  has_email boolean not null,
  was_sent boolean not null,
  do_not_contact boolean not null,
  unsubscribed boolean not null,
  invited boolean not null,
  signed_up boolean not null,
  rows bigint not null,
  primary key (
    organization_id, brand_id, stage, channel, source, country_code, language_code, saved, hidden, has_email, was_sent, do_not_contact,
    unsubscribed, invited, signed_up
  )
) with (fillfactor = 50);
comment on table recruitment.prospect_tally is
  'How many prospects of a brand are alike in what lists filter by, together with the notes in prospect_tally_change.';
comment on column recruitment.prospect_tally.country_code is 'Empty: not known. So is the language.';
comment on column recruitment.prospect_tally.was_sent is 'Whether an email was sent to them.';

create table recruitment.prospect_tally_change (
  organization_id text collate "C" not null,
  brand_id text collate "C" not null,
  stage text not null,
  channel text not null,
  source text not null,
  country_code text not null,
  language_code text not null,
  saved boolean not null,
  hidden boolean not null,
  has_email boolean not null,
  was_sent boolean not null,
  do_not_contact boolean not null,
  unsubscribed boolean not null,
  invited boolean not null,
  signed_up boolean not null,
  rows bigint not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
comment on table recruitment.prospect_tally_change is 'What was written since the last fold. Rows live for a minute.';
create index prospect_tally_change_by_brand on recruitment.prospect_tally_change (organization_id, brand_id);

call core.protect_tenant_table('recruitment.prospect_tally');
call core.protect_tenant_table('recruitment.prospect_tally_change');

-- Its body is in sql/live/recruitment/prospect_tally.sql.
create function recruitment.tally_prospect() returns trigger language plpgsql as $$ begin return null; end $$;
create trigger tally_inserted after insert on recruitment.prospect referencing new table as written
for each statement execute function recruitment.tally_prospect();
create trigger tally_deleted after delete on recruitment.prospect referencing old table as written
for each statement execute function recruitment.tally_prospect();
create trigger tally_updated after update on recruitment.prospect for each row
when (
  (old.brand_id, old.stage, old.channel, old.source, old.country_code, old.language_code, old.saved, old.hidden)
    is distinct from (new.brand_id, new.stage, new.channel, new.source, new.country_code, new.language_code, new.saved, new.hidden)
  or (old.email_status in ('found', 'verified'), old.sent > 0, old.do_not_contact_reason is null, old.unsubscribed_at is null)
    is distinct from (new.email_status in ('found', 'verified'), new.sent > 0, new.do_not_contact_reason is null, new.unsubscribed_at is null)
  or (old.invited_at is null, old.signed_up_at is null) is distinct from (new.invited_at is null, new.signed_up_at is null)
)
execute function recruitment.tally_prospect();

insert into recruitment.prospect_tally
select
  p.organization_id, p.brand_id, p.stage, p.channel, p.source, coalesce(p.country_code, ''), coalesce(p.language_code, ''), p.saved, p.hidden,
  p.email_status in ('found', 'verified'), p.sent > 0, p.do_not_contact_reason is not null, p.unsubscribed_at is not null,
  p.invited_at is not null, p.signed_up_at is not null, count(*)
from recruitment.prospect p
group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15;
