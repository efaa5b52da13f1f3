-- The tables whose rows the change feed gives.
create or replace trigger change_noted before update on program.application for each row execute function core.note_change();
create or replace trigger change_noted before update on program.click for each row execute function core.note_change();
-- A statement that sets changed_in itself, as a batch does for thousands of commissions at a time, is spared the call of the function.
create or replace trigger change_noted before update on program.commission
  for each row when (new.changed_in is distinct from pg_current_xact_id()) execute function core.note_change();
create or replace trigger change_noted before update on program.coupon for each row execute function core.note_change();
create or replace trigger change_noted before update on program.customer for each row execute function core.note_change();
create or replace trigger change_noted before update on program.dispute for each row execute function core.note_change();
create or replace trigger change_noted before update on program.link for each row execute function core.note_change();
create or replace trigger change_noted before update on program.partner for each row execute function core.note_change();
create or replace trigger change_noted before update on program.partner_group for each row execute function core.note_change();
create or replace trigger change_noted before update on program.payout for each row execute function core.note_change();
create or replace trigger change_noted before update on program.payout_batch for each row execute function core.note_change();
create or replace trigger change_noted before update on program.processor_event for each row execute function core.note_change();
create or replace trigger change_noted before update on program.program for each row execute function core.note_change();
create or replace trigger change_noted before update on program.referral for each row execute function core.note_change();
create or replace trigger change_noted before update on program.refund for each row execute function core.note_change();
create or replace trigger change_noted before update on program.risk_flag for each row execute function core.note_change();
create or replace trigger change_noted before update on program.rule for each row execute function core.note_change();
create or replace trigger change_noted before update on program.sale for each row execute function core.note_change();
create or replace trigger change_noted before update on program.sale_claim for each row execute function core.note_change();
create or replace trigger change_noted before update on program.tag for each row execute function core.note_change();
