-- Adding lists of prospects to campaigns, and by which email somebody unsubscribed.

create table recruitment.campaign_addition (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  campaign_id text collate "C" not null,
  list_id text collate "C" not null,
  state text not null default 'queued' constraint campaign_addition_state_known check (state in ('queued', 'running', 'done', 'failed')),
  total integer not null constraint campaign_addition_total_not_negative check (total >= 0),
  added integer not null default 0 constraint campaign_addition_added_not_negative check (added >= 0),
  refused jsonb not null default '{}',
  last_prospect_id text collate "C" not null default '',
  error text,
  by_user_id text collate "C",
  by_member_id text collate "C",
  finished_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint campaign_addition_campaign foreign key (organization_id, campaign_id)
    references recruitment.campaign (organization_id, id) on delete cascade,
  constraint campaign_addition_ended_has_time check ((state in ('done', 'failed')) = (finished_at is not null)),
  constraint campaign_addition_failed_has_error check ((state = 'failed') = (error is not null))
);
comment on table recruitment.campaign_addition is 'A list of prospects that is added to a campaign, by a job.';
comment on column recruitment.campaign_addition.refused is 'How many prospects were not added, by the reason.';
comment on column recruitment.campaign_addition.last_prospect_id is 'The prospects of the list up to this id were added or refused.';
create index campaign_addition_by_campaign on recruitment.campaign_addition (organization_id, campaign_id, id);
create index campaign_addition_running on recruitment.campaign_addition (organization_id, campaign_id) where finished_at is null;
call core.protect_tenant_table('recruitment.campaign_addition');

alter table recruitment.message add column unsubscribed_at timestamptz(3);
comment on column recruitment.message.unsubscribed_at is 'When its recipient unsubscribed by its link or its address.';

create index message_bounced on recruitment.message (organization_id, campaign_id, bounced_at) where bounced_at is not null;
