-- Tracking, and the commissions that it earns: clicks, referrals, customers, sales, refunds, commissions.

create table program.click (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C" not null,
  link_id text collate "C",
  referral_id text collate "C",
  param text not null,
  value text not null,
  landing_url text,
  visitor_token text not null,
  ip_hash text,
  user_agent text,
  referer text,
  country text,
  device text,
  attributed_at timestamptz(3),
  made_while_paused boolean not null default false,
  is_bot boolean not null default false,
  request_id text,
  created_at timestamptz(3) not null,
  inserted_in xid8 not null default pg_current_xact_id(),
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id)
) partition by range (id);
comment on table program.click is 'A visit through a partner''s link or handle. Partitioned by week.';
comment on column program.click.landing_url is 'The page where the visitor arrived. Null: not known.';
comment on column program.click.ip_hash is 'Keyed hash of the address; the address is never stored.';
comment on column program.click.attributed_at is 'When the click was attributed; referral_id stays null where it earned no credit.';
comment on column program.click.made_while_paused is 'The program was paused when the visitor clicked: the click earns no credit.';
comment on column program.click.is_bot is 'Its user agent is that of a bot: the click is kept, earns no credit, and is counted nowhere.';
comment on column program.click.request_id is 'The request that recorded it: what events that follow from it name as their cause.';
comment on column program.click.inserted_in is 'The transaction that inserted the row: see program.fold.';
comment on column program.click.changed_in is 'The transaction that wrote the row last.';
create index click_by_address on program.click (organization_id, ip_hash, id) where ip_hash is not null;
create index click_by_change on program.click (organization_id, changed_in);
create index click_inserted on program.click (organization_id, inserted_in);
create index click_by_link on program.click (organization_id, link_id, id) where link_id is not null;
create index click_by_partner on program.click (organization_id, partner_id, id);
create index click_by_program on program.click (organization_id, program_id, id) include (created_at, is_bot);
create index click_by_referral on program.click (organization_id, referral_id, id) where referral_id is not null;
create index click_by_time on program.click using brin (created_at) with (autosummarize = on, pages_per_range = 16);
create index click_waiting on program.click (organization_id, program_id, visitor_token) where attributed_at is null;
create index click_without_credit on program.click (organization_id, program_id, visitor_token)
  where referral_id is null and attributed_at is not null;
call core.protect_tenant_table('program.click');

create table program.click_default partition of program.click default;

create table program.referral (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C" not null,
  link_id text collate "C",
  visitor_token text,
  landing_url text,
  utm jsonb,
  tracked_by text not null constraint referral_tracked_by_known check (tracked_by in ('link', 'coupon', 'manual', 'api')),
  status text not null constraint referral_status_known check (status in ('visit', 'lead', 'converted')),
  expires_at timestamptz(3) not null,
  deleted_reason text,
  country text,
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  inserted_in xid8 not null default pg_current_xact_id(),
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  foreign key (organization_id, link_id) references program.link,
  foreign key (organization_id, partner_id) references program.partner,
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.referral is 'A visitor whom a partner referred, from the first visit to the first payment.';
comment on column program.referral.deleted_reason is 'Why it ended, as referral.deleted gave it.';
comment on column program.referral.country is 'The country of the click that made it. Null: not known.';
comment on column program.referral.inserted_in is 'The transaction that inserted the row: see program.fold.';
comment on column program.referral.changed_in is 'The transaction that wrote the row last.';
create index referral_by_change on program.referral (organization_id, changed_in);
create index referral_inserted on program.referral (organization_id, inserted_in);
create index referral_by_created_at on program.referral (organization_id, program_id, created_at)
  where deleted_at is null;
create index referral_by_link on program.referral (organization_id, link_id, id) where deleted_at is null and link_id is not null;
create index referral_by_partner on program.referral (organization_id, partner_id, id) where deleted_at is null;
create index referral_by_program on program.referral (organization_id, program_id, id) include (created_at) where deleted_at is null;
create index referral_by_status on program.referral (organization_id, program_id, status, id) where deleted_at is null;
create index referral_by_time on program.referral using brin (created_at) with (autosummarize = on, pages_per_range = 16);
create index referral_deleted_by_visitor on program.referral (organization_id, program_id, visitor_token)
  where deleted_at is not null and visitor_token is not null;
create unique index referral_one_a_visitor on program.referral (organization_id, program_id, visitor_token) where deleted_at is null;
call core.protect_tenant_table('program.referral');

create table program.customer (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C" not null,
  referral_id text collate "C",
  link_id text collate "C",
  coupon_id text collate "C",
  processor text,
  external_customer_id text,
  external_subscription_id text,
  email text,
  email_key text generated always as (lower(email)) stored,
  name text,
  identifier text,
  status text not null constraint customer_status_known check (status in ('lead', 'trial', 'active', 'cancelled', 'refunded', 'suspended')),
  tracked_by text not null constraint customer_tracked_by_known check (tracked_by in ('link', 'coupon', 'manual', 'api')),
  verified boolean not null default true,
  lead_at timestamptz(3),
  converted_at timestamptz(3),
  known_from timestamptz(3),
  origin_partner_id text collate "C",
  origin_tracked_by text,
  metadata jsonb,
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  inserted_in xid8 not null default pg_current_xact_id(),
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  constraint customer_erased_identifies_nobody check (
    deleted_at is null
    or num_nonnulls(email, name, identifier, external_customer_id, external_subscription_id, metadata) = 0
  ),
  foreign key (organization_id, coupon_id) references program.coupon,
  foreign key (organization_id, link_id) references program.link,
  foreign key (organization_id, partner_id) references program.partner,
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, referral_id) references program.referral
);
comment on table program.customer is 'A customer who is attributed to a partner, from sign-up on.';
comment on column program.customer.verified is 'False: a browser told of the customer, and no server has vouched for it.';
comment on column program.customer.deleted_at is 'When the person was erased: the row keeps what belongs to the money, and identifies nobody.';
comment on column program.customer.known_from is
  'When the sale happened that recorded the customer: what happened before was not theirs yet. Null: known from the beginning.';
comment on column program.customer.origin_partner_id is
  'Whose the customer was before the coupon of their first sale. Null: nobody''s, or no coupon has changed it.';
comment on column program.customer.inserted_in is 'The transaction that inserted the row: see program.fold.';
comment on column program.customer.changed_in is 'The transaction that wrote the row last.';
create index customer_by_change on program.customer (organization_id, changed_in);
create index customer_inserted on program.customer (organization_id, inserted_in);
create index customer_by_converted_at on program.customer (organization_id, program_id, converted_at)
  where deleted_at is null and converted_at is not null;
create index customer_by_coupon on program.customer (organization_id, coupon_id, id) where coupon_id is not null;
create index customer_by_email on program.customer (organization_id, program_id, email_key);
create index customer_by_lead_at on program.customer (organization_id, program_id, lead_at)
  where deleted_at is null;
create index customer_by_link on program.customer (organization_id, link_id, id) where link_id is not null;
create index customer_by_partner on program.customer (organization_id, partner_id, id);
create index customer_by_program on program.customer (organization_id, program_id, id) include (created_at, deleted_at);
create index customer_by_referral on program.customer (organization_id, referral_id);
create index customer_by_status on program.customer (organization_id, program_id, status, id);
create index customer_by_time on program.customer using brin (created_at) with (autosummarize = on, pages_per_range = 16);
create unique index customer_external_id_unique on program.customer (organization_id, program_id, external_customer_id);
call core.protect_tenant_table('program.customer');

create table program.sale (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C",
  customer_id text collate "C",
  link_id text collate "C",
  referral_id text collate "C",
  coupon_id text collate "C",
  external_charge_id text not null,
  external_subscription_id text,
  product_id text,
  amount_minor bigint not null constraint sale_amount_not_negative check (amount_minor >= 0),
  tax_minor bigint not null default 0 constraint sale_tax_not_negative check (tax_minor >= 0),
  shipping_minor bigint not null default 0 constraint sale_shipping_not_negative check (shipping_minor >= 0),
  fee_minor bigint not null default 0 constraint sale_fee_not_negative check (fee_minor >= 0),
  discount_minor bigint not null default 0 constraint sale_discount_not_negative check (discount_minor >= 0),
  net_amount_minor bigint not null,
  refunded_minor bigint not null default 0,
  currency text not null constraint sale_currency_is_iso check (currency ~ '^[A-Z]{3}$'),
  status text not null default 'paid' constraint sale_status_known check (status in ('paid', 'partially_refunded', 'refunded')),
  is_first_sale boolean not null,
  occurred_at timestamptz(3) not null,
  refunded_at timestamptz(3),
  self_referral_partner_id text collate "C",
  decision jsonb,
  metadata jsonb,
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  inserted_in xid8 not null default pg_current_xact_id(),
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  constraint sale_net_amount_within_amount check (net_amount_minor between 0 and amount_minor),
  constraint sale_refunds_within_amount check (refunded_minor between 0 and amount_minor),
  foreign key (organization_id, coupon_id) references program.coupon,
  foreign key (organization_id, customer_id) references program.customer,
  foreign key (organization_id, link_id) references program.link,
  foreign key (organization_id, partner_id) references program.partner,
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, referral_id) references program.referral,
  constraint sale_self_referral_partner_fkey foreign key (organization_id, self_referral_partner_id) references program.partner
);
comment on table program.sale is 'A charge, and the partner who is credited with it.';
comment on column program.sale.partner_id is 'Null: nobody was known to have brought it.';
comment on column program.sale.self_referral_partner_id is
  'The partner whose own purchase it is: earns nothing by it while the program blocks self-referrals. Null: none.';
comment on column program.sale.decision is 'Who was considered for the sale, and by which facts its rule was chosen: see src/program/sales/decision.ts.';
comment on column program.sale.inserted_in is 'The transaction that inserted the row: see program.fold.';
comment on column program.sale.changed_in is 'The transaction that wrote the row last.';
create index sale_by_change on program.sale (organization_id, changed_in);
create index sale_inserted on program.sale (organization_id, inserted_in);
create index sale_by_coupon on program.sale (organization_id, coupon_id, id)
  where deleted_at is null and coupon_id is not null;
create index sale_by_customer on program.sale (organization_id, customer_id, occurred_at) where deleted_at is null;
create index sale_by_link on program.sale (organization_id, link_id, id)
  where deleted_at is null and link_id is not null;
create index sale_by_occurred_at on program.sale (organization_id, program_id, occurred_at, id);
create index sale_by_partner on program.sale (organization_id, partner_id, id) where deleted_at is null;
create index sale_by_partner_and_time on program.sale (organization_id, partner_id, occurred_at) where deleted_at is null;
create index sale_by_program on program.sale (organization_id, program_id, id) include (created_at, currency) where deleted_at is null;
create index sale_by_referral on program.sale (organization_id, referral_id, id)
  where deleted_at is null and referral_id is not null;
create index sale_refunded_of_customer on program.sale (organization_id, customer_id, refunded_at) where deleted_at is null and status = 'refunded';
create index sale_by_status on program.sale (organization_id, program_id, status, id) where deleted_at is null and status <> 'paid';
create index sale_by_time on program.sale using brin (created_at, occurred_at) with (autosummarize = on, pages_per_range = 16);
create index sale_deleted_by_customer on program.sale (organization_id, customer_id)
  where deleted_at is not null and customer_id is not null;
create index sale_of_unknown_customer on program.sale (organization_id, program_id, (decision ->> 'unknown_customer'))
  where customer_id is null and decision ->> 'unknown_customer' is not null;
create unique index sale_external_charge_unique on program.sale (organization_id, program_id, external_charge_id) where deleted_at is null;
create unique index sale_one_first_a_customer on program.sale (organization_id, customer_id) where is_first_sale and deleted_at is null;
call core.protect_tenant_table('program.sale');

create table program.refund (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  sale_id text collate "C" not null,
  external_refund_id text,
  amount_minor bigint not null constraint refund_amount_positive check (amount_minor > 0),
  reason text,
  refunded_at timestamptz(3),
  reversed_at timestamptz(3),
  reversal_reason text,
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  inserted_in xid8 not null default pg_current_xact_id(),
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, sale_id) references program.sale
);
comment on table program.refund is 'Money given back of a sale; the sale''s refunded_minor is the sum of those that are not reversed.';
comment on column program.refund.reversed_at is 'When it was taken back: the customer did not get the money after all. It counts no more.';
comment on column program.refund.deleted_at is 'When its sale was deleted: the external id is free again.';
comment on column program.refund.refunded_at is 'When the charge was refunded. Null, of refunds of before: when it was recorded.';
comment on column program.refund.inserted_in is 'The transaction that inserted the row: see program.fold.';
comment on column program.refund.changed_in is 'The transaction that wrote the row last.';
create index refund_inserted on program.refund (organization_id, inserted_in);
create index refund_by_change on program.refund (organization_id, changed_in);
create index refund_by_program on program.refund (organization_id, program_id, id) include (created_at) where deleted_at is null;
create index refund_by_refund_time on program.refund (organization_id, program_id, (case when refunded_at is null then created_at else refunded_at end))
  where deleted_at is null;
create index refund_by_sale on program.refund (organization_id, sale_id, id);
create index refund_by_time on program.refund using brin (created_at) with (autosummarize = on, pages_per_range = 16);
create unique index refund_external_id_unique on program.refund (organization_id, program_id, external_refund_id)
  where deleted_at is null;
call core.protect_tenant_table('program.refund');

create table program.dispute (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  sale_id text collate "C" not null,
  external_dispute_id text,
  amount_minor bigint not null constraint dispute_amount_positive check (amount_minor > 0),
  reason text,
  status text not null constraint dispute_status_known check (status in ('open', 'won', 'lost')),
  refund_id text collate "C",
  opened_at timestamptz(3) not null,
  closed_at timestamptz(3),
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  constraint dispute_closed_has_time check ((status = 'open') = (closed_at is null)),
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, refund_id) references program.refund,
  foreign key (organization_id, sale_id) references program.sale
);
comment on table program.dispute is 'A charge that the customer disputes at their bank. While one is open, unpaid commissions of the sale are on hold.';
comment on column program.dispute.refund_id is 'The refund that took the amount when the dispute was lost.';
comment on column program.dispute.deleted_at is 'When its sale was deleted: the external id is free again.';
comment on column program.dispute.changed_in is 'The transaction that wrote the row last.';
create index dispute_by_change on program.dispute (organization_id, changed_in);
create index dispute_by_program on program.dispute (organization_id, program_id, id) include (created_at) where deleted_at is null;
create index dispute_by_sale on program.dispute (organization_id, sale_id, id);
create index dispute_by_status on program.dispute (organization_id, program_id, status, id) where deleted_at is null;
create unique index dispute_external_id_unique on program.dispute (organization_id, program_id, external_dispute_id)
  where deleted_at is null;
call core.protect_tenant_table('program.dispute');

create function program.is_counted(commission_status text) returns boolean
language sql immutable parallel safe
return commission_status not in ('voided', 'rejected');
comment on function program.is_counted(text) is
  'Whether a commission of this status is part of what its partner is owed or was paid. The predicate of the index commission_one_a_sale: Postgres puts it in the place of a call, and uses the index.';

create table program.commission (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C" not null,
  customer_id text collate "C",
  sale_id text collate "C",
  rule_id text collate "C",
  payout_id text collate "C",
  kind text not null constraint commission_kind_known check (kind in ('sale', 'bonus', 'clawback')),
  clawback_of text collate "C",
  amount_minor bigint not null,
  base_amount_minor bigint,
  currency text not null constraint commission_currency_is_iso check (currency ~ '^[A-Z]{3}$'),
  rate_type text,
  rate_value bigint,
  max_commission_minor bigint,
  base_is_net boolean,
  edited_by_hand boolean not null default false,
  status text not null constraint commission_status_known check (status in ('pending', 'approved', 'due', 'on_hold', 'paid', 'voided', 'rejected')),
  mature_at timestamptz(3) not null,
  approved_at timestamptz(3),
  paid_at timestamptz(3),
  voided_at timestamptz(3),
  void_reason text,
  hold_reason text,
  held_at timestamptz(3),
  held_for text,
  note text,
  edited_total_minor bigint,
  edited_base_minor bigint,
  computed_minor bigint,
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  inserted_in xid8 not null default pg_current_xact_id(),
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  constraint commission_hold_has_reason check ((status = 'on_hold') = (hold_reason is not null) and (status = 'on_hold') = (held_at is not null)),
  constraint commission_in_payout_is_due_or_paid check (payout_id is null or (status in ('due', 'paid') and deleted_at is null)),
  constraint commission_paid_by_payout check (status <> 'paid' or payout_id is not null),
  constraint commission_paid_has_time check ((status = 'paid') = (paid_at is not null)),
  constraint commission_sign check ((kind = 'clawback') = (amount_minor < 0) or amount_minor = 0),
  foreign key (organization_id, clawback_of) references program.commission,
  foreign key (organization_id, customer_id) references program.customer,
  foreign key (organization_id, partner_id) references program.partner,
  foreign key (organization_id, program_id) references program.program on delete cascade,
  foreign key (organization_id, rule_id) references program.rule,
  foreign key (organization_id, sale_id) references program.sale
) with (fillfactor = 80);
comment on table program.commission is 'What a partner earned by a sale or as a bonus, or has to return (a clawback, with a negative amount).';
comment on column program.commission.rate_value is 'The rate it was computed with, copied: later edits of the rule do not reach it.';
comment on column program.commission.max_commission_minor is 'The rule''s cap, copied with the rate.';
comment on column program.commission.base_is_net is 'Whether the rate applies to the net amount; copied from the program with the rate.';
comment on column program.commission.edited_by_hand is
  'Its amount was set, or it was voided, rejected or deleted, by hand: refunds and corrections keep to that.';
comment on column program.commission.mature_at is 'When the holding period ends; fixed at creation.';
comment on column program.commission.held_for is
  'The reason of a hold by hand, if it was voided in that: it is on hold again once it is earned again.';
comment on column program.commission.edited_total_minor is
  'What the sale''s commissions of the partner came to when this one was edited by hand: scaled by what is left of the base from then on.';
comment on column program.commission.edited_base_minor is 'What was left of the sale''s base when the commission was edited by hand.';
comment on column program.commission.computed_minor is
  'What a correction of a sale (a clawback or a bonus) came to before it was edited by hand. Null: it was not edited.';
comment on column program.commission.inserted_in is 'The transaction that inserted the row: see program.fold.';
comment on column program.commission.changed_in is 'The transaction that wrote the row last.';
create index bonus_by_created_at on program.commission (organization_id, program_id, created_at)
  where deleted_at is null and sale_id is null;
create index clawback_by_created_at on program.commission (organization_id, program_id, created_at)
  where deleted_at is null and kind = 'clawback';
create index commission_inserted on program.commission (organization_id, inserted_in);
create index commission_by_applied_rule on program.commission (organization_id, rule_id, id)
  where deleted_at is null and rule_id is not null;
create index commission_by_maturity on program.commission (organization_id, program_id, mature_at, id) include (created_at, status)
  where deleted_at is null;
create index commission_by_paid_at on program.commission (organization_id, program_id, paid_at)
  where deleted_at is null and status = 'paid';
create index commission_by_partner on program.commission (organization_id, partner_id, id) where deleted_at is null;
create index commission_by_time on program.commission using brin (created_at) with (autosummarize = on, pages_per_range = 16);
create index commission_changed on program.commission
  using brin ((changed_in::text::bigint)) with (autosummarize = on, pages_per_range = 16);
create index commission_maturing on program.commission (organization_id, mature_at, id)
  where status in ('pending', 'approved') and deleted_at is null;
create index commission_not_due on program.commission (organization_id, program_id, status, id)
  where deleted_at is null and status <> 'due';
create index commission_of_customer on program.commission (organization_id, customer_id, rule_id, sale_id)
  where customer_id is not null;
create index commission_of_program on program.commission (organization_id, program_id, id)
  include (created_at, kind, status) where deleted_at is null;
create index commission_of_sale on program.commission (organization_id, sale_id) where sale_id is not null;
create unique index commission_one_a_sale on program.commission (organization_id, sale_id, partner_id)
  where kind = 'sale' and deleted_at is null and status not in ('voided', 'rejected');
create index commission_open on program.commission (organization_id, program_id, partner_id)
  include (status, currency, amount_minor)
  where status in ('pending', 'approved', 'due', 'on_hold') and deleted_at is null;
call core.protect_tenant_table('program.commission');

create table program.commission_entry (
  organization_id text collate "C" not null,
  commission_id text collate "C" not null,
  position bigint generated always as identity,
  program_id text collate "C" not null,
  partner_id text collate "C" not null,
  sale_id text collate "C",
  refund_id text collate "C",
  payout_id text collate "C",
  kind text not null constraint commission_entry_kind_known check (kind in ('earned', 'adjusted', 'clawed_back', 'voided', 'paid')),
  cause text not null,
  amount_minor bigint not null constraint commission_entry_not_zero check (amount_minor <> 0),
  currency text not null,
  effective_at timestamptz(3) not null,
  posted_at timestamptz(3) not null,
  primary key (organization_id, commission_id, "position"),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.commission_entry is
  'What happened to commissions, one row a change, never updated: earned, adjusted, clawed back, voided, paid. All but paid sum to what a commission counts; all sum to what is still owed of it.';
comment on column program.commission_entry.cause is
  'Why: sale, bonus, sale_refunded, sale_corrected, edited_by_hand, payout_paid, the reason of a void, …';
comment on column program.commission_entry.amount_minor is 'Positive: owed to the partner. A payout is negative.';
comment on column program.commission_entry.effective_at is 'When it happened: the sale, the refund, the payment.';
comment on column program.commission_entry.posted_at is
  'When the transaction that wrote it began: entries of a month do not change once the transactions of its end are over.';
create index commission_entry_by_day on program.commission_entry (organization_id, posted_at);
create index commission_entry_by_partner on program.commission_entry (organization_id, partner_id, currency, position);
call core.protect_tenant_table('program.commission_entry');

create table program.risk_flag (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C",
  customer_id text collate "C",
  kind text not null,
  severity text not null constraint risk_flag_severity_known check (severity in ('low', 'medium', 'high')),
  evidence jsonb not null,
  status text not null default 'open' constraint risk_flag_status_known check (status in ('open', 'confirmed', 'dismissed')),
  note text,
  resolved_by text,
  resolved_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id),
  constraint risk_flag_note_to_close check (status = 'open' or note is not null),
  foreign key (organization_id, customer_id) references program.customer,
  foreign key (organization_id, partner_id) references program.partner,
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.risk_flag is 'What a monitoring rule noticed, until a person closes it with a note.';
comment on column program.risk_flag.changed_in is 'The transaction that wrote the row last.';
create index risk_flag_by_change on program.risk_flag (organization_id, changed_in);
create index risk_flag_by_customer on program.risk_flag (organization_id, customer_id, id);
create index risk_flag_by_partner on program.risk_flag (organization_id, partner_id, id) include (program_id);
create index risk_flag_by_program on program.risk_flag (organization_id, program_id, id) include (created_at, kind, severity);
create index risk_flag_by_status on program.risk_flag (organization_id, program_id, status, id);
create unique index risk_flag_one_open on program.risk_flag (organization_id, program_id, kind, partner_id, customer_id)
  nulls not distinct where status = 'open';
call core.protect_tenant_table('program.risk_flag');

call core.ensure_weekly_partitions('program.click', 'clk', now(), now() + interval '5 weeks');

create table program.publishable_key (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  name text not null,
  mode text not null constraint publishable_key_mode_known check (mode in ('live', 'test')),
  key text collate "C" not null constraint publishable_key_unique unique,
  allowed_origins text[] not null constraint publishable_key_has_origins check (cardinality(allowed_origins) > 0),
  signing_secret bytea not null,
  setup text constraint publishable_key_setup_known check (setup in ('first_party', 'same_site', 'third_party')),
  last_used_at timestamptz(3),
  revoked_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (organization_id, id),
  foreign key (organization_id, program_id) references program.program on delete cascade
);
comment on table program.publishable_key is 'A key that stands in web pages: it records clicks and leads, and opens nothing else.';
comment on column program.publishable_key.key is 'Public: it is stored as it is.';
comment on column program.publishable_key.signing_secret is 'AES-256-GCM; the merchant''s server signs leads by it.';
comment on column program.publishable_key.setup is 'How the page that used it last reached the service. Null: never, or a browser that does not say.';
create index publishable_key_by_program on program.publishable_key (organization_id, program_id, id);
call core.protect_tenant_table('program.publishable_key');
