-- Views of links, coupons, publishable keys, clicks and referrals.

create or replace view data.link with (security_barrier = true) as
select
  l.id,
  l.program_id,
  l.partner_id,
  case when (select data.sees_personal()) then l.param else data.without_emails(l.param) end as param,
  case when (select data.sees_personal()) then l.value else data.without_emails(l.value) end as value,
  case when (select data.sees_personal()) then l.destination_url else data.without_emails(l.destination_url) end as destination_url,
  case when (select data.sees_personal()) then l.url else data.without_emails(l.url) end as url,
  l.short_url,
  -- The same form as data.program.subdomain.
  l.short_slug || '' as short_slug,
  l.short_domain,
  case when (select data.sees_personal()) then l.label else data.without_emails(l.label) end as label,
  l.rate_override,
  l.created_at,
  l.updated_at
from program.link l
where l.organization_id = (select data.organization_id())
  and l.deleted_at is null;
comment on view data.link is 'Tracking links of partners. Deleted links are left out; clicks and sales by them remain.';
comment on column data.link.id is 'The link (lnk_).';
comment on column data.link.program_id is 'The program (prg_).';
comment on column data.link.partner_id is 'The partner (part_).';
comment on column data.link.param is 'The query parameter that carries the value. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.link.value is 'What identifies the link in the query parameter. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.link.destination_url is 'Where it leads, without the tracking parameter. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.link.url is 'Where it leads, with the tracking parameter. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.link.short_url is 'The short link. Null: none.';
comment on column data.link.short_slug is 'The last part of the short link. Null: none.';
comment on column data.link.short_domain is 'The host of the short link. Null: none.';
comment on column data.link.label is 'Your label. Null: none. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.link.rate_override is 'The link''s own rate as JSON: rate_type, rate_value. Null: the rules apply.';
comment on column data.link.created_at is 'When it was recorded.';
comment on column data.link.updated_at is 'When it last changed.';

create or replace view data.coupon with (security_barrier = true) as
select
  c.id,
  c.program_id,
  c.partner_id,
  c.group_id,
  case when (select data.sees_personal()) then c.code else data.without_emails(c.code) end as code,
  c.external_id,
  c.active as is_active,
  c.created_at,
  c.updated_at
from program.coupon c
where c.organization_id = (select data.organization_id())
  and c.deleted_at is null;
comment on view data.coupon is 'Coupons, which credit their partner with the sales that they are used for. Deleted coupons are left out.';
comment on column data.coupon.id is 'The coupon (cpn_).';
comment on column data.coupon.program_id is 'The program (prg_).';
comment on column data.coupon.partner_id is 'The partner (part_). Null: nobody earns from it.';
comment on column data.coupon.group_id is 'The group (grp_). Null: none.';
comment on column data.coupon.code is 'The code that customers enter. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.coupon.external_id is 'The processor''s promotion id, which a sale is matched by. Null: not given.';
comment on column data.coupon.is_active is 'Whether sales with it are attributed.';
comment on column data.coupon.created_at is 'When it was recorded.';
comment on column data.coupon.updated_at is 'When it last changed.';

create or replace view data.publishable_key with (security_barrier = true) as
select
  k.id,
  k.program_id,
  case when (select data.sees_personal()) then k.name else data.without_emails(k.name) end as name,
  k.mode,
  k.allowed_origins,
  k.setup,
  k.last_used_at,
  k.revoked_at,
  k.created_at,
  k.updated_at
from program.publishable_key k
where k.organization_id = (select data.organization_id());
comment on view data.publishable_key is 'Keys that stand in the pages of websites, and record clicks and leads. The API shows the key itself.';
comment on column data.publishable_key.id is 'The publishable key (pub_).';
comment on column data.publishable_key.program_id is 'The program (prg_).';
comment on column data.publishable_key.name is 'Its name. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.publishable_key.mode is 'live or test.';
comment on column data.publishable_key.allowed_origins is 'The origins whose pages may use it.';
comment on column data.publishable_key.setup is 'How the page that used it last reached the service: first_party, same_site or third_party. Null: never, or not known.';
comment on column data.publishable_key.last_used_at is 'When it was last used, to the minute. Null: never.';
comment on column data.publishable_key.revoked_at is 'When it was revoked. Null: it was not.';
comment on column data.publishable_key.created_at is 'When it was recorded.';
comment on column data.publishable_key.updated_at is 'When it last changed.';

create or replace view data.click with (security_barrier = true) as
select
  c.id,
  c.program_id,
  c.partner_id,
  c.link_id,
  c.referral_id,
  c.referral_id is not null as is_credited,
  case when (select data.sees_personal()) then c.landing_url else data.without_emails(c.landing_url) end as landing_url,
  case when (select data.sees_personal()) then c.referer else data.without_emails(c.referer) end as referer,
  c.country,
  case when (select data.sees_personal()) then c.device else data.without_emails(c.device) end as device,
  case when (select data.sees_personal()) then c.user_agent else data.without_emails(c.user_agent) end as user_agent,
  c.attributed_at,
  c.created_at,
  c.is_bot
from program.click c
where c.organization_id = (select data.organization_id());
comment on view data.click is 'Visits through a partner''s link or handle: one row each, including repeated ones, and those of bots (is_bot), which no report counts. Filter by created_at or by id.';
comment on column data.click.id is 'The click (clk_). Ids sort by time.';
comment on column data.click.program_id is 'The program (prg_).';
comment on column data.click.partner_id is 'The partner (part_).';
comment on column data.click.link_id is 'The link (lnk_). Null: the visitor came by the partner''s handle.';
comment on column data.click.referral_id is 'The referral that it is credited to (ref_). Null: it earned no credit, or is not attributed yet.';
comment on column data.click.is_credited is 'Whether it is credited to a referral.';
comment on column data.click.landing_url is 'The page where the visitor arrived. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.click.referer is 'The page that the visitor came from. Null: not given. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.click.country is 'ISO 3166-1 alpha-2 country code. Null: not given.';
comment on column data.click.device is 'The kind of device, as you named it. Null: not given.';
comment on column data.click.user_agent is 'The visitor''s user agent. Null: not given. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.click.attributed_at is 'When it was attributed. Null: not yet.';
comment on column data.click.created_at is 'When it was recorded.';
comment on column data.click.is_bot is 'Whether its user agent is that of a bot: it earns no credit, and no report counts it.';

create or replace view data.referral with (security_barrier = true) as
select
  r.id,
  r.program_id,
  r.partner_id,
  r.link_id,
  case when (select data.sees_personal()) then r.landing_url else data.without_emails(r.landing_url) end as landing_url,
  case
    when not (select data.sees_personal()) and data.without_emails(r.utm::text) <> r.utm::text then (
      select jsonb_object_agg(data.without_emails(u.key), data.without_emails(u.value)) from jsonb_each_text(r.utm) as u
    )
    else r.utm
  end as utm,
  r.tracked_by,
  r.status,
  r.expires_at,
  r.created_at,
  r.updated_at,
  r.country
from program.referral r
where r.organization_id = (select data.organization_id())
  and r.deleted_at is null;
comment on view data.referral is 'Visitors whom partners referred, from the first visit to the first payment. Deleted referrals (self-referrals, reattributed ones) are left out.';
comment on column data.referral.id is 'The referral (ref_).';
comment on column data.referral.program_id is 'The program (prg_).';
comment on column data.referral.partner_id is 'The partner who is credited (part_).';
comment on column data.referral.link_id is 'The link (lnk_). Null: the visitor came by the partner''s handle.';
comment on column data.referral.landing_url is 'The page where the visitor first arrived. Null: not known. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.referral.utm is 'The utm_* parameters of the landing page as JSON, without the prefix. Null: none. Emails in them are "hidden" unless the login was made with --personal-data.';
comment on column data.referral.tracked_by is 'link, coupon, manual or api: how it was attributed.';
comment on column data.referral.status is 'visit, lead (signed up) or converted (paid).';
comment on column data.referral.expires_at is 'When the attribution window ends.';
comment on column data.referral.created_at is 'When it was recorded.';
comment on column data.referral.updated_at is 'When it last changed.';
comment on column data.referral.country is 'ISO 3166-1 alpha-2 country code of the click that created it. Null: not known.';
