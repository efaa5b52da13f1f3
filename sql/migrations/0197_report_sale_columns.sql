-- By the columns that are set instead of a condition on them: each insert of a sale copied the conditions, which are long, with the triggers.
create or replace trigger report_updating
  before update of partner_id, customer_id, link_id, referral_id, coupon_id, product_id, amount_minor, currency, occurred_at, deleted_at
  on program.sale for each row execute function program.report_rows();
create or replace trigger report_updated
  after update of partner_id, customer_id, link_id, referral_id, coupon_id, product_id, amount_minor, currency, occurred_at, deleted_at
  on program.sale for each row execute function program.report_rows();
