-- A customer whose person is erased stays as a row, because money hangs on it, without anything that says who it was.
alter table program.customer add column deleted_at timestamptz(3);
comment on column program.customer.deleted_at is 'When the person was erased: the row keeps what belongs to the money, and identifies nobody.';
alter table program.customer add constraint customer_erased_identifies_nobody check (
  deleted_at is null
  or num_nonnulls(email, name, identifier, external_customer_id, external_subscription_id, metadata) = 0
);

create or replace trigger tally_updated after update on program.customer for each row when ((old.partner_id, old.link_id, old.coupon_id, old.deleted_at) is distinct from (new.partner_id, new.link_id, new.coupon_id, new.deleted_at))
execute function program.tally_customer();
