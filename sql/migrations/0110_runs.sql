-- Searches and scans: what they asked for, what they spend, what they found, and the pages that were fetched.

create table recruitment.run (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  brand_id text collate "C" not null,
  kind text not null,
  search_type text constraint run_search_type_known
    check (search_type in ('keyword', 'competitor', 'lookalike', 'channel', 'url_list')),
  trigger text constraint run_trigger_known check (trigger in ('first', 'weekly', 'search', 'manual')),
  search_id text collate "C",
  week date,
  request jsonb not null default '{}',
  ceiling_minor bigint constraint run_ceiling_not_negative check (ceiling_minor >= 0),
  state text not null,
  steps jsonb,
  results integer not null default 0,
  found integer not null default 0,
  pages integer not null default 0,
  spent_micros bigint not null default 0,
  visits integer not null default 0,
  visits_left integer not null default 0,
  credit text not null default 'none' constraint run_credit_known check (credit in ('none', 'taken', 'refunded')),
  error text,
  interruptions integer not null default 0,
  claim text collate "C",
  claimed_by text collate "C",
  claimed_until timestamptz(3),
  created_at timestamptz(3) not null default now(),
  started_at timestamptz(3),
  finished_at timestamptz(3),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint run_kind_known check (
    case kind
      when 'search' then search_type is not null and trigger is null
        and state in ('queued', 'running', 'done', 'stopped_at_ceiling', 'cancelled', 'failed')
      when 'scan' then trigger is not null and search_type is null
        and state in ('running', 'done', 'stopped_at_ceiling', 'failed')
      else false
    end
  ),
  constraint run_ends_once check ((state in ('queued', 'running')) = (finished_at is null)),
  constraint run_failed_has_error check ((state = 'failed') = (error is not null)),
  constraint run_spent_within_ceiling check (spent_micros between 0 and coalesce(ceiling_minor * 10000, spent_micros)),
  constraint run_visits_add_up check (visits_left between 0 and visits)
);
comment on table recruitment.run is 'Searches, and scans that visit what was found: ids of both begin with fsc_.';
comment on column recruitment.run.request is 'What a search was asked for. It may hold what somebody typed.';
comment on column recruitment.run.steps is 'Which provider is asked what, and where each stands. Null: not planned yet.';
comment on column recruitment.run.results is 'Results that were not skipped.';
comment on column recruitment.run.found is 'New prospects; of a scan also those with new evidence.';
comment on column recruitment.run.spent_micros is 'What its pages cost, in millionths of a US dollar, reserved before each page.';
comment on column recruitment.run.credit is 'Whether it took a credit, and whether that was given back.';
comment on column recruitment.run.interruptions is 'How often a worker that had begun something of it died.';
comment on column recruitment.run.claim is 'The task that asks for its pages now: one at a time, until claimed_until.';
comment on column recruitment.run.week is 'Of a weekly scan: the local day that it belongs to.';
create index run_by_brand on recruitment.run (organization_id, brand_id, kind, id);
create unique index run_weekly_unique on recruitment.run (organization_id, brand_id, week) where week is not null;
create index run_open on recruitment.run (organization_id, brand_id, kind) where finished_at is null;
create index run_claimed on recruitment.run (claimed_by) where claimed_by is not null;

create table recruitment.run_page (
  organization_id text collate "C" not null references core.organization on delete cascade,
  run_id text collate "C" not null,
  number integer not null constraint run_page_number_positive check (number > 0),
  step integer not null,
  provider text not null,
  state text not null constraint run_page_state_known check (state in ('reserved', 'stored', 'released', 'lost')),
  price_micros bigint not null constraint run_page_price_not_negative check (price_micros >= 0),
  reserved_at timestamptz(3) not null,
  hits integer not null default 0,
  primary key (organization_id, run_id, number),
  constraint run_page_run foreign key (organization_id, run_id) references recruitment.run (organization_id, id) on delete cascade
);
comment on table recruitment.run_page is 'The pages that a run asked its providers for, each reserved before it was asked for.';
comment on column recruitment.run_page.state is
  'reserved: it may be asked for now. stored: its results are kept. released: it was not billed. lost: it may have been billed, and no answer came.';

create table recruitment.spending (
  organization_id text collate "C" not null references core.organization on delete cascade,
  month date not null,
  spent_micros bigint not null constraint spending_not_negative check (spent_micros >= 0),
  primary key (organization_id, month)
);
comment on table recruitment.spending is 'What an organization spent on providers in a month (UTC), in millionths of a US dollar.';

create table recruitment.run_result (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  run_id text collate "C" not null,
  provider text not null,
  url text not null,
  title text not null,
  description text not null,
  channel text,
  key text collate "C",
  prospect_id text collate "C",
  outcome text not null constraint run_result_outcome_known check (outcome in ('new', 'known', 'skipped')),
  skipped_because text,
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint run_result_skipped_has_reason check ((outcome = 'skipped') = (skipped_because is not null)),
  constraint run_result_run foreign key (organization_id, run_id) references recruitment.run (organization_id, id) on delete cascade,
  constraint run_result_prospect foreign key (organization_id, prospect_id)
    references recruitment.prospect (organization_id, id) on delete cascade
);
comment on table recruitment.run_result is 'What a run found, in its order. It goes with its prospect.';
create unique index run_result_once on recruitment.run_result (organization_id, run_id, md5(url));
create index run_result_by_run on recruitment.run_result (organization_id, run_id, id);
create index run_result_by_prospect on recruitment.run_result (organization_id, prospect_id) where prospect_id is not null;

create table recruitment.visit (
  organization_id text collate "C" not null references core.organization on delete cascade,
  run_id text collate "C" not null,
  number integer not null,
  prospect_id text collate "C" not null,
  url text not null,
  attempts integer not null default 0,
  outcome text,
  has_new_evidence boolean not null default false,
  done_at timestamptz(3),
  primary key (organization_id, run_id, number),
  constraint visit_done_has_outcome check ((done_at is null) = (outcome is null)),
  constraint visit_run foreign key (organization_id, run_id) references recruitment.run (organization_id, id) on delete cascade,
  constraint visit_prospect foreign key (organization_id, prospect_id)
    references recruitment.prospect (organization_id, id) on delete cascade
);
comment on table recruitment.visit is 'A page of a prospect that a scan visits.';
create index visit_by_prospect on recruitment.visit (organization_id, prospect_id, done_at);

create table recruitment.page (
  organization_id text collate "C" not null references core.organization on delete cascade,
  url text collate "C" not null,
  host text collate "C" not null,
  domain text collate "C" not null,
  title text not null,
  description text not null,
  text text not null,
  language_code text,
  linked_domains text[] not null default '{}',
  fetched_at timestamptz(3) not null,
  search tsvector not null generated always as (
    setweight(to_tsvector('simple'::regconfig, title), 'A') || setweight(to_tsvector('simple'::regconfig, description), 'B')
      || to_tsvector('simple'::regconfig, text)
  ) stored,
  primary key (organization_id, url)
);
comment on table recruitment.page is 'Every page that was fetched for the organization, as it was the last time: what the provider index searches.';
create index page_by_search on recruitment.page using gin (search);
create index page_by_linked_domain on recruitment.page using gin (linked_domains);
create index page_by_host on recruitment.page (organization_id, host);
create index page_by_domain on recruitment.page (organization_id, domain);

create table recruitment.provider_credential (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  provider text not null constraint provider_credential_provider_known check (provider in ('searxng', 'brave', 'youtube')),
  credentials bytea not null,
  hint text not null,
  warnings text[] not null default '{}',
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint provider_credential_unique unique (organization_id, provider)
);
comment on table recruitment.provider_credential is 'What an organization asks a search provider with, in place of the operator''s.';
comment on column recruitment.provider_credential.credentials is 'Sealed: AES-256-GCM with the key''s id in front.';

create table recruitment.reveal (
  organization_id text collate "C" not null references core.organization on delete cascade,
  prospect_id text collate "C" not null,
  state text not null constraint reveal_state_known check (state in ('queued', 'running', 'found', 'not_found', 'failed')),
  credit text not null default 'none' constraint reveal_credit_known check (credit in ('none', 'taken', 'refunded')),
  attempts integer not null default 0,
  addresses integer not null default 0,
  pages integer not null default 0,
  reason text,
  created_at timestamptz(3) not null default now(),
  finished_at timestamptz(3),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, prospect_id),
  constraint reveal_ends_once check ((state in ('queued', 'running')) = (finished_at is null)),
  constraint reveal_prospect foreign key (organization_id, prospect_id)
    references recruitment.prospect (organization_id, id) on delete cascade
);
comment on table recruitment.reveal is 'The last search for the addresses of a prospect.';

call core.protect_tenant_table('recruitment.run');
call core.protect_tenant_table('recruitment.run_page');
call core.protect_tenant_table('recruitment.spending');
call core.protect_tenant_table('recruitment.run_result');
call core.protect_tenant_table('recruitment.visit');
call core.protect_tenant_table('recruitment.page');
call core.protect_tenant_table('recruitment.provider_credential');
call core.protect_tenant_table('recruitment.reveal');

-- Politeness and quotas are the whole service's, whoever asks.
create unlogged table recruitment.host_turn (
  host text collate "C" primary key,
  next_at timestamptz not null
);
comment on table recruitment.host_turn is 'When the next request to a host may be sent, by any worker. Forgotten when it is past.';
create index host_turn_by_time on recruitment.host_turn (next_at);

create table recruitment.provider_quota (
  key_hash bytea not null,
  day date not null,
  used bigint not null,
  primary key (key_hash, day)
);
comment on table recruitment.provider_quota is 'Units of a daily quota that were used, by SHA-256 of the key. Days are those of the provider.';
