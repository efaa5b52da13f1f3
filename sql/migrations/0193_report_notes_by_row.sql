-- Reports note what is inserted a row at a time, as what is updated: a write is of one row, for which a set of the statement's rows costs more than
-- the note. Clicks, which are loaded in bulk, are noted a statement at a time.
create or replace trigger report_inserted after insert on program.referral for each row execute function program.report_referrals();
create or replace trigger report_inserted after insert on program.customer for each row execute function program.report_customers();
create or replace trigger report_inserted after insert on program.sale for each row execute function program.report_sales();
create or replace trigger report_inserted after insert on program.refund for each row execute function program.report_refunds();
create or replace trigger report_inserted after insert on program.commission for each row execute function program.report_commissions();
