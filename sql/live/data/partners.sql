-- Views of partners and of what belongs to them.

create or replace view data.partner with (security_barrier = true) as
select
  p.id,
  p.program_id,
  p.group_id,
  array(
    select x.tag_id from program.partner_tag x
    where x.organization_id = p.organization_id and x.partner_id = p.id
    order by x.tag_id
  ) as tag_ids,
  p.handle,
  p.status,
  case when (select data.sees_personal()) then p.email end as email,
  case when (select data.sees_personal()) then p.first_name end as first_name,
  case when (select data.sees_personal()) then p.last_name end as last_name,
  case when (select data.sees_personal()) then p.display_name end as display_name,
  case when (select data.sees_personal()) then p.company_name end as company_name,
  case when (select data.sees_personal()) then p.website_url end as website_url,
  p.country_code,
  p.language_code,
  case when (select data.sees_personal()) then p.decline_reason else data.without_emails(p.decline_reason) end as decline_reason,
  case when (select data.sees_personal()) then p.suspension_reason else data.without_emails(p.suspension_reason) end as suspension_reason,
  p.currency,
  p.min_payout_minor,
  p.tax_form_status,
  p.tax_form_updated_at,
  p.terms_accepted_at,
  case when (select data.sees_personal()) then p.terms_version else data.without_emails(p.terms_version) end as terms_version,
  p.completed_onboarding,
  case when (select data.sees_personal()) then p.metadata end as metadata,
  p.created_at,
  p.updated_at
from program.partner p
where p.organization_id = (select data.organization_id())
  and p.deleted_at is null;
comment on view data.partner is 'Partners: who refers customers to a program and earns commissions. Deleted partners are left out.';
comment on column data.partner.id is 'The partner (part_).';
comment on column data.partner.program_id is 'The program (prg_).';
comment on column data.partner.group_id is 'The partner''s group (grp_). Null: none.';
comment on column data.partner.tag_ids is 'The partner''s tags (tag_). Empty: none.';
comment on column data.partner.handle is 'What identifies the partner in a tracking parameter, as in ?ref=ada.';
comment on column data.partner.status is 'pending, active, declined or suspended.';
comment on column data.partner.email is 'The email address. Personal: null unless the login was made with --personal-data.';
comment on column data.partner.first_name is 'The first name. Personal: null unless the login was made with --personal-data.';
comment on column data.partner.last_name is 'The last name. Personal: null unless the login was made with --personal-data.';
comment on column data.partner.display_name is 'The name shown to others. Personal: null unless the login was made with --personal-data.';
comment on column data.partner.company_name is 'The company. Personal: null unless the login was made with --personal-data.';
comment on column data.partner.website_url is 'The partner''s website or channel. Personal: null unless the login was made with --personal-data.';
comment on column data.partner.country_code is 'ISO 3166-1 alpha-2 country code. Null: not given.';
comment on column data.partner.language_code is 'ISO 639-1 language code. Null: not given.';
comment on column data.partner.decline_reason is 'Why the application was rejected, or withdrawn. Null unless declined. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.partner.suspension_reason is 'Why the partner is suspended. Null unless suspended. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.partner.currency is 'ISO 4217 code of the program''s currency, in which the amounts of this row are.';
comment on column data.partner.min_payout_minor is 'The least balance that is paid out, in minor units of the currency. Null: the program''s.';
comment on column data.partner.tax_form_status is 'none, submitted, verified or rejected.';
comment on column data.partner.tax_form_updated_at is 'When the status of the tax form last changed. Null: never.';
comment on column data.partner.terms_accepted_at is 'When the partner accepted the terms. Null: not accepted.';
comment on column data.partner.terms_version is 'The version of the terms that the partner accepted. Null: not accepted. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.partner.completed_onboarding is 'Whether the partner has completed the onboarding in the portal.';
comment on column data.partner.metadata is 'Your own data about the partner, as JSON. Personal: null unless the login was made with --personal-data.';
comment on column data.partner.created_at is 'When it was recorded.';
comment on column data.partner.updated_at is 'When it last changed.';

create or replace view data.partner_tag with (security_barrier = true) as
select
  x.partner_id,
  x.tag_id
from program.partner_tag x join program.partner p on p.organization_id = x.organization_id and p.id = x.partner_id
where x.organization_id = (select data.organization_id())
  and p.deleted_at is null;
comment on view data.partner_tag is 'Which partners have which tags: one row for each pair.';
comment on column data.partner_tag.partner_id is 'The partner (part_).';
comment on column data.partner_tag.tag_id is 'The tag (tag_).';

create or replace view data.application with (security_barrier = true) as
select
  a.id,
  a.program_id,
  a.partner_id,
  a.group_id,
  case when (select data.sees_personal()) then a.email end as email,
  case when (select data.sees_personal()) then a.answers end as answers,
  case when (select data.sees_personal()) then a.source else data.without_emails(a.source) end as source,
  a.status,
  a.reviewed_by_user_id,
  a.reviewed_at,
  case when (select data.sees_personal()) then a.rejection_reason else data.without_emails(a.rejection_reason) end as rejection_reason,
  a.created_at,
  a.updated_at
from program.application a
where a.organization_id = (select data.organization_id());
comment on view data.application is 'Requests to join a program.';
comment on column data.application.id is 'The application (app_).';
comment on column data.application.program_id is 'The program (prg_).';
comment on column data.application.partner_id is 'The partner that it is about (part_). Null: none.';
comment on column data.application.group_id is 'The group that was applied for (grp_). Null: none.';
comment on column data.application.email is 'The applicant''s email address. Personal: null unless the login was made with --personal-data.';
comment on column data.application.answers is 'The applicant''s answers, as JSON. Personal: null unless the login was made with --personal-data.';
comment on column data.application.source is 'Where the application came from. Null: not given. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.application.status is 'pending, approved, rejected or withdrawn.';
comment on column data.application.reviewed_by_user_id is 'Who decided (usr_). Null: nobody yet, or a key of no user.';
comment on column data.application.reviewed_at is 'When it was decided. Null: not yet.';
comment on column data.application.rejection_reason is 'The reason that the applicant was given. Null unless rejected. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.application.created_at is 'When it was recorded.';
comment on column data.application.updated_at is 'When it last changed.';

create or replace view data.payout_method with (security_barrier = true) as
select
  m.partner_id,
  p.program_id,
  m.method,
  case when (select data.sees_personal()) then m.hint end as hint,
  m.created_at,
  m.updated_at
from program.payout_method m join program.partner p on p.organization_id = m.organization_id and p.id = m.partner_id
where m.organization_id = (select data.organization_id())
  and p.deleted_at is null;
comment on view data.payout_method is 'How partners are paid. The account itself is encrypted and not shown.';
comment on column data.payout_method.partner_id is 'The partner (part_): one row each.';
comment on column data.payout_method.program_id is 'The program (prg_).';
comment on column data.payout_method.method is 'bank_transfer, wire, crypto, paypal, wise or stripe.';
comment on column data.payout_method.hint is 'The last four characters of what identifies the account. Personal: null unless the login was made with --personal-data.';
comment on column data.payout_method.created_at is 'When it was recorded.';
comment on column data.payout_method.updated_at is 'When it last changed.';

create or replace view data.risk_flag with (security_barrier = true) as
select
  f.id,
  f.program_id,
  f.partner_id,
  f.customer_id,
  f.kind,
  f.severity,
  case when (select data.sees_personal()) then f.evidence end as evidence,
  f.status,
  case when (select data.sees_personal()) then f.note end as note,
  f.resolved_by,
  f.resolved_at,
  f.created_at,
  f.updated_at
from program.risk_flag f
where f.organization_id = (select data.organization_id());
comment on view data.risk_flag is 'Signs of possible fraud, raised by a monitoring rule and resolved by a person.';
comment on column data.risk_flag.id is 'The flag (rsk_).';
comment on column data.risk_flag.program_id is 'The program (prg_).';
comment on column data.risk_flag.partner_id is 'The partner concerned (part_). Null: none.';
comment on column data.risk_flag.customer_id is 'The customer concerned (cus_). Null: none.';
comment on column data.risk_flag.kind is 'The rule that raised it, such as self_referral or click_velocity.';
comment on column data.risk_flag.severity is 'low, medium or high.';
comment on column data.risk_flag.evidence is 'The facts that raised it, as JSON. Personal: null unless the login was made with --personal-data.';
comment on column data.risk_flag.status is 'open, confirmed or dismissed.';
comment on column data.risk_flag.note is 'The note of the person who resolved it. Null while open. Personal: null unless the login was made with --personal-data.';
comment on column data.risk_flag.resolved_by is 'Who resolved it: the user whose API key was used (usr_), or the key (key_) if it belongs to no user. Null while open.';
comment on column data.risk_flag.resolved_at is 'When it was resolved. Null while open.';
comment on column data.risk_flag.created_at is 'When it was recorded.';
comment on column data.risk_flag.updated_at is 'When it last changed.';
