-- The triggers that note what the tallies count, written out: before, a procedure made them and their functions out of texts. The functions
-- have the names of before and are in sql/live/program/tally_change.sql; nothing that is written meanwhile is counted by neither or by both.

-- In the order in which a request writes them, from what it depends on to what follows from it.
lock table
  program.program, program.partner_group, program.tag, program.partner, program.application, program.link, program.coupon, program.rule,
  program.click, program.referral, program.customer, program.sale, program.commission, program.risk_flag
in share row exclusive mode;

create or replace trigger tally_inserted after insert on program.program referencing new table as written
for each statement execute function program.tally_program();
create or replace trigger tally_deleted after delete on program.program referencing old table as written
for each statement execute function program.tally_program();

create or replace trigger tally_inserted after insert on program.partner_group referencing new table as written
for each statement execute function program.tally_partner_group();
create or replace trigger tally_deleted after delete on program.partner_group referencing old table as written
for each statement execute function program.tally_partner_group();

create or replace trigger tally_inserted after insert on program.tag referencing new table as written
for each statement execute function program.tally_tag();
create or replace trigger tally_deleted after delete on program.tag referencing old table as written
for each statement execute function program.tally_tag();

create or replace trigger tally_inserted after insert on program.partner referencing new table as written
for each statement execute function program.tally_partner();
create or replace trigger tally_deleted after delete on program.partner referencing old table as written
for each statement execute function program.tally_partner();
create or replace trigger tally_updated after update on program.partner for each row when ((old.group_id, old.status, old.deleted_at) is distinct from (new.group_id, new.status, new.deleted_at))
execute function program.tally_partner();

create or replace trigger tally_inserted after insert on program.application referencing new table as written
for each statement execute function program.tally_application();
create or replace trigger tally_deleted after delete on program.application referencing old table as written
for each statement execute function program.tally_application();

create or replace trigger tally_inserted after insert on program.link referencing new table as written
for each statement execute function program.tally_link();
create or replace trigger tally_deleted after delete on program.link referencing old table as written
for each statement execute function program.tally_link();
create or replace trigger tally_updated after update on program.link for each row when (old.deleted_at is distinct from new.deleted_at)
execute function program.tally_link();

create or replace trigger tally_inserted after insert on program.coupon referencing new table as written
for each statement execute function program.tally_coupon();
create or replace trigger tally_deleted after delete on program.coupon referencing old table as written
for each statement execute function program.tally_coupon();
create or replace trigger tally_updated after update on program.coupon for each row when (old.deleted_at is distinct from new.deleted_at)
execute function program.tally_coupon();

create or replace trigger tally_inserted after insert on program.rule referencing new table as written
for each statement execute function program.tally_rule();
create or replace trigger tally_deleted after delete on program.rule referencing old table as written
for each statement execute function program.tally_rule();
create or replace trigger tally_updated after update on program.rule for each row when (old.deleted_at is distinct from new.deleted_at)
execute function program.tally_rule();

create or replace trigger tally_inserted after insert on program.click referencing new table as written
for each statement execute function program.tally_click();
create or replace trigger tally_deleted after delete on program.click referencing old table as written
for each statement execute function program.tally_click();

create or replace trigger tally_inserted after insert on program.referral referencing new table as written
for each statement execute function program.tally_referral();
create or replace trigger tally_deleted after delete on program.referral referencing old table as written
for each statement execute function program.tally_referral();
create or replace trigger tally_updated after update on program.referral for each row when ((old.partner_id, old.link_id, old.deleted_at) is distinct from (new.partner_id, new.link_id, new.deleted_at))
execute function program.tally_referral();

create or replace trigger tally_inserted after insert on program.customer referencing new table as written
for each statement execute function program.tally_customer();
create or replace trigger tally_deleted after delete on program.customer referencing old table as written
for each statement execute function program.tally_customer();
create or replace trigger tally_updated after update on program.customer for each row when ((old.partner_id, old.link_id, old.coupon_id) is distinct from (new.partner_id, new.link_id, new.coupon_id))
execute function program.tally_customer();

create or replace trigger tally_inserted after insert on program.sale referencing new table as written
for each statement execute function program.tally_sale();
create or replace trigger tally_deleted after delete on program.sale referencing old table as written
for each statement execute function program.tally_sale();
create or replace trigger tally_updated after update on program.sale for each row when ((old.currency, old.amount_minor, old.deleted_at) is distinct from (new.currency, new.amount_minor, new.deleted_at))
execute function program.tally_sale();

create or replace trigger tally_inserted after insert on program.commission referencing new table as written
for each statement execute function program.tally_commission();
create or replace trigger tally_deleted after delete on program.commission referencing old table as written
for each statement execute function program.tally_commission();
create or replace trigger tally_updated after update on program.commission for each row when ((old.partner_id, old.currency, old.amount_minor, old.status, old.deleted_at) is distinct from (new.partner_id, new.currency, new.amount_minor, new.status, new.deleted_at))
execute function program.tally_commission();

create or replace trigger tally_inserted after insert on program.risk_flag referencing new table as written
for each statement execute function program.tally_risk_flag();
create or replace trigger tally_deleted after delete on program.risk_flag referencing old table as written
for each statement execute function program.tally_risk_flag();

drop procedure program.keep_tally(text, text[], text, text, text, text[]);
drop table program.tallied;
