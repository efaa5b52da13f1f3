-- Prospects: who could become an affiliate, how to reach them, and who must not be reached.

create table recruitment.prospect (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  brand_id text collate "C" not null,
  channel text not null constraint prospect_channel_known
    check (channel in ('website', 'youtube', 'podcast', 'newsletter', 'instagram', 'tiktok', 'x', 'other')),
  key text collate "C" not null constraint prospect_key_form check (key ~ '^[A-Za-z0-9._-]{1,255}$'),
  name text,
  url text,
  description text,
  country_code text,
  language_code text,
  timezone text,
  followers bigint constraint prospect_followers_not_negative check (followers >= 0),
  score integer constraint prospect_score_in_range check (score between 0 and 100),
  evidence jsonb not null default '[]',
  source text not null constraint prospect_source_known
    check (source in ('manual', 'api', 'csv_import', 'search', 'scan')),
  source_run_id text collate "C",
  stage text not null default 'found' constraint prospect_stage_known
    check (stage in ('found', 'contacted', 'replied', 'interested', 'negotiating', 'agreed', 'active', 'lost')),
  saved boolean not null default false,
  hidden boolean not null default false,
  hidden_reason text constraint prospect_hidden_reason_known
    check (hidden_reason in ('not_relevant', 'competitor', 'low_quality', 'already_partner', 'wrong_language', 'other')),
  assignee_member_id text collate "C",
  do_not_contact_reason text constraint prospect_do_not_contact_reason_known
    check (do_not_contact_reason in ('manual', 'angry_reply', 'legal', 'complaint')),
  do_not_contact_since timestamptz(3),
  unsubscribed_at timestamptz(3),
  invited_at timestamptz(3),
  signed_up_at timestamptz(3),
  partner_id text collate "C",
  deal_id text collate "C",
  email_status text not null default 'none' constraint prospect_email_status_known
    check (email_status in ('none', 'found', 'verified', 'bounced')),
  custom jsonb not null default '{}',
  sent integer not null default 0,
  replies integer not null default 0,
  last_sent_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  -- The simple parser keeps no `=` in a word, so that no text is taken for a filter.
  search tsvector not null generated always as (
    array_to_tsvector(array['brand=' || brand_id, 'stage=' || stage, 'channel=' || channel, 'source=' || source])
      || array_to_tsvector(array['country=' || coalesce(country_code, ''), 'language=' || coalesce(language_code, '')])
      || to_tsvector(
        'simple'::regconfig,
        regexp_replace(key, '[._-]+', ' ', 'g') || ' ' || key || ' ' || coalesce(name, '') || ' ' || coalesce(description, '')
      )
  ) stored,
  primary key (organization_id, id),
  constraint prospect_key_unique unique (organization_id, brand_id, channel, key),
  constraint prospect_hidden_has_reason check (hidden = (hidden_reason is not null)),
  constraint prospect_do_not_contact_has_time check ((do_not_contact_reason is null) = (do_not_contact_since is null))
);
comment on table recruitment.prospect is 'Who could become an affiliate of a brand, once in each channel.';
comment on column recruitment.prospect.key is 'The prospect in the channel: a registrable domain, the id of a channel, a handle. It never holds an @.';
comment on column recruitment.prospect.evidence is 'Why it fits: a list of {kind, url, text}.';
comment on column recruitment.prospect.source_run_id is 'The search or scan (fsc_) that found it.';
comment on column recruitment.prospect.search is
  'The words of its texts, and its brand and the fields that lists filter by as words with an `=`, so that text, tenant and filters are one look-up.';
create index prospect_by_search on recruitment.prospect using gin (search) with (gin_pending_list_limit = 1024);
create index prospect_by_brand on recruitment.prospect (organization_id, brand_id, id)
  include (stage, channel, source, saved, hidden, country_code, language_code, followers, email_status);
create index prospect_by_assignee on recruitment.prospect (organization_id, assignee_member_id, id)
  where assignee_member_id is not null;
create index prospect_by_run on recruitment.prospect (organization_id, source_run_id, id) where source_run_id is not null;
create index prospect_saved on recruitment.prospect (organization_id, brand_id, id) where saved;
create index prospect_contacted on recruitment.prospect (organization_id, brand_id, id) where stage <> 'found';
create index prospect_do_not_contact on recruitment.prospect (organization_id, brand_id, id)
  where do_not_contact_reason is not null;
create index prospect_unsubscribed on recruitment.prospect (organization_id, brand_id, id) where unsubscribed_at is not null;
create index prospect_invited on recruitment.prospect (organization_id, brand_id, id) where invited_at is not null;
create index prospect_uncontacted on recruitment.prospect (brand_id, created_at) where stage = 'found' and sent = 0;

create table recruitment.hmac_key (
  organization_id text collate "C" primary key references core.organization on delete cascade,
  key bytea not null,
  created_at timestamptz(3) not null default now()
);
comment on table recruitment.hmac_key is
  'The key that an organization''s addresses are hashed with, sealed. Re-encryption seals it anew and leaves the key: hashes of before still match.';

create table recruitment.email_address (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  prospect_id text collate "C" not null,
  address bytea not null,
  address_hmac bytea not null,
  domain_hmac bytea not null,
  rank integer not null default 0,
  source text not null constraint email_address_source_known
    check (source in ('page', 'channel_api', 'stored', 'manual', 'provider')),
  source_url text,
  verification text not null constraint email_address_verification_known
    check (verification in ('valid', 'accept_all', 'webmail', 'disposable', 'unknown', 'invalid')),
  found_at timestamptz(3) not null,
  used_at timestamptz(3),
  bounced_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint email_address_unique unique (organization_id, prospect_id, address_hmac),
  constraint email_address_prospect foreign key (organization_id, prospect_id)
    references recruitment.prospect (organization_id, id) on delete cascade
);
comment on table recruitment.email_address is 'Where a prospect can be written to.';
comment on column recruitment.email_address.address is 'Sealed: AES-256-GCM with the key''s id in front.';
comment on column recruitment.email_address.address_hmac is 'HMAC-SHA256 of the normalised address, by the key of the organization.';
comment on column recruitment.email_address.domain_hmac is 'The same of its registrable domain.';
comment on column recruitment.email_address.rank is 'The best first: 0 is better than 1.';
create index email_address_by_hmac on recruitment.email_address (organization_id, address_hmac);
create index email_address_by_domain on recruitment.email_address (organization_id, domain_hmac);
create index email_address_unused on recruitment.email_address (found_at) where used_at is null and source <> 'manual';

create table recruitment.suppression (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  kind text not null,
  hmac bytea,
  value bytea,
  prospect_id text collate "C",
  reason text not null constraint suppression_reason_known
    check (reason in ('manual', 'angry_reply', 'legal', 'unsubscribed', 'complaint', 'hard_bounce')),
  by_user_id text collate "C",
  created_at timestamptz(3) not null default now(),
  lifted_at timestamptz(3),
  lift_reason text constraint suppression_lift_reason_known check (lift_reason in ('mistake', 'consent', 'other')),
  lifted_by_user_id text collate "C",
  primary key (organization_id, id),
  constraint suppression_kind_known check (
    case kind
      when 'address' then hmac is not null and prospect_id is null
      when 'domain' then hmac is not null and prospect_id is null
      when 'prospect' then hmac is null and prospect_id is not null
      else false
    end
  ),
  constraint suppression_lift_has_reason check ((lifted_at is null) = (lift_reason is null)),
  constraint suppression_stays check (lifted_at is null or reason not in ('unsubscribed', 'complaint')),
  constraint suppression_prospect foreign key (organization_id, prospect_id)
    references recruitment.prospect (organization_id, id) on delete cascade
);
comment on table recruitment.suppression is 'Who must not be written to: an address, a domain, or a prospect with all addresses.';
comment on column recruitment.suppression.hmac is 'HMAC-SHA256 of the normalised address or of the domain, by the key of the organization. Of a prospect: null.';
comment on column recruitment.suppression.value is 'The address or domain, sealed. Null: of a prospect, or the person was erased, and the HMAC is what is left.';
create unique index suppression_hmac_unique on recruitment.suppression (organization_id, hmac) where lifted_at is null and hmac is not null;
create unique index suppression_prospect_unique on recruitment.suppression (organization_id, prospect_id)
  where lifted_at is null and prospect_id is not null;
create index suppression_by_prospect on recruitment.suppression (organization_id, prospect_id) where prospect_id is not null;

create table recruitment.tombstone (
  organization_id text collate "C" not null references core.organization on delete cascade,
  hmac bytea not null,
  erased_at timestamptz(3) not null default now(),
  primary key (organization_id, hmac)
);
comment on table recruitment.tombstone is
  'What is left of a prospect who was erased: HMAC-SHA256 of brand, channel and key. No search and no scan makes them again.';

create table recruitment.list (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  brand_id text collate "C" not null,
  name text not null,
  description text,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id)
);
comment on table recruitment.list is 'A list of prospects of a brand.';
create unique index list_name_unique on recruitment.list (organization_id, brand_id, lower(name));

create table recruitment.list_prospect (
  organization_id text collate "C" not null references core.organization on delete cascade,
  list_id text collate "C" not null,
  prospect_id text collate "C" not null,
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, list_id, prospect_id),
  constraint list_prospect_list foreign key (organization_id, list_id)
    references recruitment.list (organization_id, id) on delete cascade,
  constraint list_prospect_prospect foreign key (organization_id, prospect_id)
    references recruitment.prospect (organization_id, id) on delete cascade
);
comment on table recruitment.list_prospect is 'Who is in which list.';
create index list_prospect_by_prospect on recruitment.list_prospect (organization_id, prospect_id);

create table recruitment.note (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  prospect_id text collate "C" not null,
  author_user_id text collate "C",
  author_member_id text collate "C",
  text text not null constraint note_text_length check (char_length(text) between 1 and 5000),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint note_prospect foreign key (organization_id, prospect_id)
    references recruitment.prospect (organization_id, id) on delete cascade
);
comment on table recruitment.note is 'What the team notes about a prospect.';
create index note_by_prospect on recruitment.note (organization_id, prospect_id, id);

create table recruitment.activity (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  prospect_id text collate "C" not null,
  kind text not null,
  by_user_id text collate "C",
  by_member_id text collate "C",
  data jsonb not null default '{}',
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint activity_prospect foreign key (organization_id, prospect_id)
    references recruitment.prospect (organization_id, id) on delete cascade
);
comment on table recruitment.activity is 'What happened with a prospect, in the order of its ids.';
comment on column recruitment.activity.data is 'What belongs to the kind; people''s own words stand here alone, and in no event.';
create index activity_by_prospect on recruitment.activity (organization_id, prospect_id, id);

create table recruitment.sample_prospect (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  stage text not null,
  saved boolean not null,
  hidden boolean not null,
  hidden_reason text,
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id)
);
comment on table recruitment.sample_prospect is 'How an organization left the samples (sample_fdi_01 to 12) that it acted on; the others are as they come.';

call core.protect_tenant_table('recruitment.prospect');
call core.protect_tenant_table('recruitment.hmac_key');
call core.protect_tenant_table('recruitment.email_address');
call core.protect_tenant_table('recruitment.suppression');
call core.protect_tenant_table('recruitment.tombstone');
call core.protect_tenant_table('recruitment.list');
call core.protect_tenant_table('recruitment.list_prospect');
call core.protect_tenant_table('recruitment.note');
call core.protect_tenant_table('recruitment.activity');
call core.protect_tenant_table('recruitment.sample_prospect');
