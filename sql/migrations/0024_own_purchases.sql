-- A sale that a partner would have been credited with for a purchase of their own keeps whose it is, so that no later correction pays it.
alter table program.sale add column self_referral_partner_id text collate "C";
comment on column program.sale.self_referral_partner_id is
  'The partner whose own purchase it is: earns nothing by it while the program blocks self-referrals. Null: none.';
alter table program.sale add constraint sale_self_referral_partner_fkey
  foreign key (organization_id, self_referral_partner_id) references program.partner not valid;
