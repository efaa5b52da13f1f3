-- Views of programs and of who works on them. Each view filters by organization itself too, so that a wrong owner cannot open it.

create or replace view data.organization with (security_barrier = true) as
select
  o.id,
  case when (select data.sees_personal()) then o.name else data.without_emails(o.name) end as name,
  o.created_at,
  o.updated_at
from core.organization o
where o.id = (select data.organization_id());
comment on view data.organization is 'Your organization: one row.';
comment on column data.organization.id is 'The organization (org_).';
comment on column data.organization.name is 'Its name. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.organization.created_at is 'When it was recorded.';
comment on column data.organization.updated_at is 'When it last changed.';

create or replace view data.user with (security_barrier = true) as
select
  u.id,
  case when (select data.sees_personal()) then u.email end as email,
  case when (select data.sees_personal()) then u.name end as name,
  u.role,
  u.created_at,
  u.updated_at,
  u.removed_at
from core.user_account u
where u.organization_id = (select data.organization_id());
comment on view data.user is 'People of your organization, also those who were removed.';
comment on column data.user.id is 'The user (usr_).';
comment on column data.user.email is 'The email address. Personal: null unless the login was made with --personal-data.';
comment on column data.user.name is 'The name. Personal: null unless the login was made with --personal-data.';
comment on column data.user.role is 'owner or member. Emails of the service go to the owner.';
comment on column data.user.created_at is 'When it was recorded.';
comment on column data.user.updated_at is 'When it last changed.';
comment on column data.user.removed_at is 'When the person was removed from the organization. Null: they were not.';

create or replace view data.audit_entry with (security_barrier = true) as
select
  a.id,
  a.api_key_id,
  a.user_id,
  a.operation,
  a.object_id,
  a.fields,
  a.request_id,
  a.created_at
from core.audit_entry a
where a.organization_id = (select data.organization_id());
comment on view data.audit_entry is 'The audit log: who changed what through the API or the command line. It holds no values.';
comment on column data.audit_entry.id is 'The entry (aud_).';
comment on column data.audit_entry.api_key_id is 'The key of the request (key_). Null: the operator changed it on the command line.';
comment on column data.audit_entry.user_id is 'The user whose key it was (usr_). Null: nobody''s, or the command line.';
comment on column data.audit_entry.operation is 'The operation, such as partners.update.';
comment on column data.audit_entry.object_id is 'The object that was changed, or created. Null: several, or none.';
comment on column data.audit_entry.fields is 'The names of the fields that were sent.';
comment on column data.audit_entry.request_id is 'The request (req_). Null: the command line.';
comment on column data.audit_entry.created_at is 'When it was recorded.';

create or replace view data.program with (security_barrier = true) as
select
  p.id,
  case when (select data.sees_personal()) then p.name else data.without_emails(p.name) end as name,
  case when (select data.sees_personal()) then p.product_name else data.without_emails(p.product_name) end as product_name,
  case when (select data.sees_personal()) then p.website_url else data.without_emails(p.website_url) end as website_url,
  -- Unique in the service: a condition on the column itself would reach its index, and EXPLAIN show whether another organization has it.
  p.subdomain || '' as subdomain,
  p.custom_domain,
  p.currency,
  p.status,
  case when (select data.sees_personal()) then p.terms_url else data.without_emails(p.terms_url) end as terms_url,
  case when (select data.sees_personal()) then p.terms_version else data.without_emails(p.terms_version) end as terms_version,
  p.cookie_days,
  case
    when (select data.sees_personal()) then p.url_params
    else array(select data.without_emails(u.param) from unnest(p.url_params) with ordinality as u (param, nth) order by u.nth)
  end as url_params,
  p.attribution,
  p.commission_on_net_revenue,
  p.holding_period_days,
  p.min_payout_minor,
  p.payout_term,
  p.payout_methods,
  p.auto_payouts_enabled,
  p.require_tax_forms,
  p.block_self_referrals,
  p.blocked_countries,
  case when (select data.sees_personal()) then p.processor else data.without_emails(p.processor) end as processor,
  p.application_required,
  p.auto_enrol_customers,
  p.created_at,
  p.updated_at
from program.program p
where p.organization_id = (select data.organization_id());
comment on view data.program is 'Partner programs. Every amount of a program is in its currency unless a column beside it says otherwise.';
comment on column data.program.id is 'The program (prg_).';
comment on column data.program.name is 'Its name. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.program.product_name is 'The name of the product that partners promote. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.program.website_url is 'The website that links lead to. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.program.subdomain is 'The program''s subdomain, unique in the service.';
comment on column data.program.custom_domain is 'The host name of short links. Null: that of the service.';
comment on column data.program.currency is 'ISO 4217 code of the program''s currency.';
comment on column data.program.status is 'active or paused. A paused program takes no new referrals.';
comment on column data.program.terms_url is 'The terms that partners accept. Null: none. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.program.terms_version is 'The current version of the terms. Null: none. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.program.cookie_days is 'Days after a click within which a sign-up is credited to the partner.';
comment on column data.program.url_params is 'Query parameters that can carry a partner''s handle. Emails in them are "hidden" unless the login was made with --personal-data.';
comment on column data.program.attribution is 'last_click or first_click: which click is credited until the visitor becomes a customer.';
comment on column data.program.commission_on_net_revenue is 'Whether commissions are computed from the net amount of a sale.';
comment on column data.program.holding_period_days is 'Days after a sale until its commission is due.';
comment on column data.program.min_payout_minor is 'The least balance that is paid out, in minor units of the currency.';
comment on column data.program.payout_term is 'net_15, net_30 or net_60: days after the end of the month until a payout is due.';
comment on column data.program.payout_methods is 'The methods that partners can choose from.';
comment on column data.program.auto_payouts_enabled is 'Whether payouts are sent automatically when they are due.';
comment on column data.program.require_tax_forms is 'Whether a partner needs a tax form to be paid.';
comment on column data.program.block_self_referrals is 'Whether partners are kept from earning by their own purchases.';
comment on column data.program.blocked_countries is 'ISO 3166-1 alpha-2 codes of countries whose clicks earn no credit.';
comment on column data.program.processor is 'The billing processor that charges customers. Null: not given. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.program.application_required is 'Whether automatically enrolled customers start as pending partners with an application to review.';
comment on column data.program.auto_enrol_customers is 'Whether a customer becomes a partner on the first sale.';
comment on column data.program.created_at is 'When it was recorded.';
comment on column data.program.updated_at is 'When it last changed.';

create or replace view data.group with (security_barrier = true) as
select
  g.id,
  g.program_id,
  case when (select data.sees_personal()) then g.name else data.without_emails(g.name) end as name,
  g.slug,
  case when (select data.sees_personal()) then g.description else data.without_emails(g.description) end as description,
  case when (select data.sees_personal()) then g.landing_url else data.without_emails(g.landing_url) end as landing_url,
  g.is_private,
  g.is_default,
  g.created_at,
  g.updated_at
from program.partner_group g
where g.organization_id = (select data.organization_id())
  and g.deleted_at is null;
comment on view data.group is 'Groups of partners. Each program has one default group.';
comment on column data.group.id is 'The group (grp_).';
comment on column data.group.program_id is 'The program (prg_).';
comment on column data.group.name is 'Its name. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.group.slug is 'Its name in URLs, unique in the program.';
comment on column data.group.description is 'What it is for. Null: not given. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.group.landing_url is 'The page that its partners'' links lead to. Null: not given. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.group.is_private is 'Whether partners cannot join it themselves.';
comment on column data.group.is_default is 'Whether it is the program''s default group.';
comment on column data.group.created_at is 'When it was recorded.';
comment on column data.group.updated_at is 'When it last changed.';

create or replace view data.tag with (security_barrier = true) as
select
  t.id,
  t.program_id,
  case when (select data.sees_personal()) then t.name else data.without_emails(t.name) end as name,
  t.color,
  t.created_at,
  t.updated_at
from program.tag t
where t.organization_id = (select data.organization_id())
  and t.deleted_at is null;
comment on view data.tag is 'Labels of partners.';
comment on column data.tag.id is 'The tag (tag_).';
comment on column data.tag.program_id is 'The program (prg_).';
comment on column data.tag.name is 'Its name. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.tag.color is 'Its color, such as #336699.';
comment on column data.tag.created_at is 'When it was recorded.';
comment on column data.tag.updated_at is 'When it last changed.';

create or replace view data.rule with (security_barrier = true) as
select
  r.id,
  r.program_id,
  case when (select data.sees_personal()) then r.name else data.without_emails(r.name) end as name,
  r.rate_type,
  r.rate_value,
  p.currency,
  r.priority,
  r.status,
  r.applies_to,
  r.partner_ids,
  r.group_ids,
  r.tag_ids,
  r.link_ids,
  r.product_ids,
  r.duration_months,
  r.max_payments,
  r.min_sale_minor,
  r.max_commission_minor,
  r.tiers,
  r.tier_metric,
  r.starts_at,
  r.ends_at,
  r.created_at,
  r.updated_at
from program.rule r left join program.program p on p.organization_id = r.organization_id and p.id = r.program_id
where r.organization_id = (select data.organization_id())
  and r.deleted_at is null;
comment on view data.rule is 'Commission rules: how a sale earns. One rule pays per sale.';
comment on column data.rule.id is 'The rule (flw_).';
comment on column data.rule.program_id is 'The program (prg_).';
comment on column data.rule.name is 'Its name. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.rule.rate_type is 'percent: a share of the sale. fixed: an amount for each sale.';
comment on column data.rule.rate_value is 'Basis points (2000 is 20 %) for percent, minor units of the currency for fixed.';
comment on column data.rule.currency is 'ISO 4217 code of the program''s currency, in which a fixed rate is paid.';
comment on column data.rule.priority is 'Of rules that match equally closely, the one with the highest priority applies.';
comment on column data.rule.status is 'active or inactive.';
comment on column data.rule.applies_to is 'The customer''s sales that it applies to: all, first or renewals.';
comment on column data.rule.partner_ids is 'Only these partners. Empty: any.';
comment on column data.rule.group_ids is 'Only partners of these groups. Empty: any.';
comment on column data.rule.tag_ids is 'Only partners with one of these tags. Empty: any.';
comment on column data.rule.link_ids is 'Only sales by these links. Empty: any.';
comment on column data.rule.product_ids is 'Only sales of these products. Empty: any.';
comment on column data.rule.duration_months is 'How many months after the customer''s first sale it applies. Null: no limit.';
comment on column data.rule.max_payments is 'How many sales of a customer it applies to. Null: no limit.';
comment on column data.rule.min_sale_minor is 'Only sales of at least this amount, in minor units of the sale''s currency. Null: any.';
comment on column data.rule.max_commission_minor is 'The most that it pays for a sale, in minor units of the sale''s currency. Null: no limit.';
comment on column data.rule.tiers is 'Other rates for partners who sell more, as JSON: from, rate_value.';
comment on column data.rule.tier_metric is 'What the from of a tier is compared with: sales_count or revenue_minor. Null: no tiers.';
comment on column data.rule.starts_at is 'It applies to sales from this time on. Null: no start.';
comment on column data.rule.ends_at is 'It applies to sales before this time. Null: no end.';
comment on column data.rule.created_at is 'When it was recorded.';
comment on column data.rule.updated_at is 'When it last changed.';
