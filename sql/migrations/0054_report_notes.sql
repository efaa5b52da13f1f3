-- Reports note what is inserted from the rows themselves, a statement at a time, and what is updated by one trigger that has the row before and
-- the row afterwards. Written out in sql/live/program/report_change.sql, which runs behind this file.

create function program.report_referrals() returns trigger language plpgsql as $$ begin return null; end $$;
create function program.report_customers() returns trigger language plpgsql as $$ begin return null; end $$;
create function program.report_sales() returns trigger language plpgsql as $$ begin return null; end $$;
create function program.report_refunds() returns trigger language plpgsql as $$ begin return null; end $$;
create function program.report_commissions() returns trigger language plpgsql as $$ begin return null; end $$;

drop trigger report_inserted on program.referral;
drop trigger report_updating on program.referral;
drop trigger report_updated on program.referral;
create trigger report_inserted after insert on program.referral referencing new table as written
for each statement execute function program.report_referrals();
create trigger report_updated after update on program.referral for each row
when ((old.created_at, old.partner_id, old.link_id, old.country, old.landing_url, old.deleted_at) is distinct from (new.created_at, new.partner_id, new.link_id, new.country, new.landing_url, new.deleted_at))
execute function program.report_referrals();

drop trigger report_inserted on program.customer;
drop trigger report_updating on program.customer;
drop trigger report_updated on program.customer;
create trigger report_inserted after insert on program.customer referencing new table as written
for each statement execute function program.report_customers();
create trigger report_updated after update on program.customer for each row
when ((old.partner_id, old.link_id, old.coupon_id, old.referral_id, old.lead_at, old.converted_at, old.deleted_at) is distinct from (new.partner_id, new.link_id, new.coupon_id, new.referral_id, new.lead_at, new.converted_at, new.deleted_at))
execute function program.report_customers();

drop trigger report_inserted on program.sale;
create trigger report_inserted after insert on program.sale referencing new table as written
for each statement execute function program.report_sales();

drop trigger report_inserted on program.refund;
drop trigger report_updating on program.refund;
drop trigger report_updated on program.refund;
create trigger report_inserted after insert on program.refund referencing new table as written
for each statement execute function program.report_refunds();
create trigger report_updated after update on program.refund for each row
when ((old.sale_id, old.amount_minor, old.refunded_at, old.created_at, old.deleted_at) is distinct from (new.sale_id, new.amount_minor, new.refunded_at, new.created_at, new.deleted_at))
execute function program.report_refunds();

-- Of a status counts whether the commission is counted, and whether it is paid: one that becomes due fires nothing.
drop trigger report_inserted on program.commission;
drop trigger report_updating on program.commission;
drop trigger report_updated on program.commission;
create trigger report_inserted after insert on program.commission referencing new table as written
for each statement execute function program.report_commissions();
create trigger report_updated after update on program.commission for each row
when (
  (old.partner_id, old.customer_id, old.sale_id, old.kind, old.amount_minor, old.currency, old.created_at, old.paid_at, old.deleted_at)
    is distinct from (new.partner_id, new.customer_id, new.sale_id, new.kind, new.amount_minor, new.currency, new.created_at, new.paid_at, new.deleted_at)
  or (old.status <> new.status and (
    program.is_counted(old.status) <> program.is_counted(new.status) or old.status = 'paid' or new.status = 'paid'
  ))
)
execute function program.report_commissions();
